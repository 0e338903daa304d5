"""The spaces of an index: each retriever's vectors as they are searched, and before they were whitened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpora.progress import Progress
from indexer.encoded import EncodedTexts
from indexer.layout import IndexLayout
from indexer.opening import OpenIndex, VectorParts, sample_rows
from indexer.vectors import Vectors
from search.diagnostics.geometry import Geometry, geometry
from search.errors import NoJudgementsError
from search.measuring import measure_index
from search.retrieval.searcher import Searcher

#: Texts whose vectors are looked at.
SAMPLE = 5000


@dataclass(frozen=True, slots=True)
class Effect:
    """What whitening does to a measure: the retriever's mean less its counterpart's, and whether that is chance."""

    measure: str
    counterpart: str
    difference: float
    p: float

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "measure": self.measure,
            "counterpart": self.counterpart,
            "difference": self.difference,
            "p": self.p,
        }


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """One retriever's space.

    Attributes
    ----------
    searched
        The vectors as they are searched.
    before
        The same texts before whitening; None where nothing was whitened.
    whitening
        What whitening settled on (shrinkage, rank, anisotropy), as the build wrote it down.
    effect
        What it does to the collection's measure, where the index holds the same encoder without it.
    """

    searched: Geometry
    before: Geometry | None
    whitening: Mapping[str, Any]
    effect: Effect | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value: the searched space's figures at the top."""
        return {
            **self.searched.to_json(),
            "before": None if self.before is None else self.before.to_json(),
            "whitening": dict(self.whitening) or None,
            "effect": None if self.effect is None else self.effect.to_json(),
        }


def index_geometry(
    index: OpenIndex, names: Sequence[str], *, progress: Progress, sample: int = SAMPLE, seed: int = 0
) -> dict[str, SpaceReport]:
    """Look at the spaces of some retrievers of an index.

    Parameters
    ----------
    index
        The index.
    names
        Its retrievers with vectors; others are passed over.
    progress
        Told of texts that must be encoded again.
    sample
        Most texts to look at.
    seed
        Chooses texts and pairs.
    """
    rng = np.random.default_rng(seed)
    rows = sample_rows(index.manifest.texts, sample, rng)
    reports = {}
    for name in names:
        record = index.record(name)
        if not record.has_vectors:
            continue
        parts = index.vectors(name)
        searched = geometry(parts.store.reconstruct(rows), np.random.default_rng(seed))
        before = None
        if record.whitening:
            before = geometry(_raw(index, name, parts, rows, progress), np.random.default_rng(seed))
        found = index.checks["retrievers"].get(name, {}).get("whitening") or {}
        reports[name] = SpaceReport(searched, before, found, _effect(index, name, progress))
    return reports


def _raw(
    index: OpenIndex, name: str, parts: VectorParts, rows: np.ndarray[Any, np.dtype[np.int64]], progress: Progress
) -> Vectors:
    """Return the vectors of some rows before whitening: kept ones where there are any, else encoded again."""
    digests = index.documents.digests()[rows]
    fingerprint = index.record(name).encoder
    for folder in IndexLayout(index.root).workshop.glob(f"*/texts-{fingerprint[:16]}"):
        held = EncodedTexts(folder, parts.encoder.dimension)
        if (held.find(digests) >= 0).all():
            return held.gather(digests)
    progress.start(f"encoding for {name}", len(rows), "texts")
    vectors = parts.encoder.encode(list(index.documents.iter_texts(rows)))
    progress.advance(len(rows))
    progress.finish()
    return vectors


def _effect(index: OpenIndex, name: str, progress: Progress) -> Effect | None:
    record = index.record(name)
    if not record.whitening:
        return None
    other = next(
        (
            candidate.name
            for candidate in index.manifest.retrievers
            if candidate.encoder == record.encoder and not candidate.whitening
        ),
        None,
    )
    if other is None:
        return None
    searcher = Searcher.open(index.root, [other, name])
    try:
        evaluation = measure_index(searcher, progress=progress, measures="nDCG@10", baseline=other).evaluation
    except NoJudgementsError:
        return None
    finally:
        searcher.close()
    found = evaluation.rows[name].versus["nDCG@10"]
    return Effect("nDCG@10", other, found.mean, found.p)


def geometry_rows(reports: Mapping[str, SpaceReport]) -> Iterator[dict[str, str]]:
    """Yield rows for a table, a space before whitening above the same after it."""
    for name, report in reports.items():
        if report.before is not None:
            yield _row(f"{name}, before", report.before, "")
        effect = report.effect
        shown = "" if effect is None else f"{effect.difference:+.4f} (p = {effect.p:.3f})"
        yield _row(name, report.searched, shown)


def _row(name: str, found: Geometry, effect: str) -> dict[str, str]:
    return {
        "space": name,
        "mean cosine": f"{found.mean_cosine:.3f}",
        "nearest": "-" if found.nearest_cosine is None else f"{found.nearest_cosine:.3f}",
        "IsoScore": f"{found.isoscore:.3f}",
        "effective rank": f"{found.effective_rank:.1f} of {found.dimension}",
        "in first 1/3/10": f"{found.first_1:.0%} {found.first_3:.0%} {found.first_10:.0%}",
        "hubness": "-" if found.hubness is None else f"{found.hubness:.2f}",
        "norm spread": f"{found.norm_spread:.3f}",
        "duplicates": f"{found.duplicates:,}",
        "nDCG@10": effect,
    }


def histogram_line(found: Geometry) -> str:
    """Return the cosines of random pairs, from -1 to 1, as a line of blocks."""
    counts = np.asarray(found.histogram.counts, np.float64)
    return sparkline(counts.reshape(-1, max(1, len(counts) // 40)).sum(axis=1).tolist())


def sparkline(values: Sequence[float]) -> str:
    """Return values as a line of blocks, the largest being full."""
    most = max(values, default=0.0)
    return "".join(" ▁▂▃▄▅▆▇█"[round(8 * max(0.0, value) / most) if most > 0 else 0] for value in values)
