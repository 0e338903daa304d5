"""Vectors into a store: whiten, scale, and fill a FAISS index, a block at a time."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.approximation import DEPTH, ExactBest, choose_factory, training_rows, tune
from indexer.cosine_background import SAMPLE, CosineBackground, RowSample, random_cosines
from indexer.encoded import BLOCK
from indexer.encoder import Role
from indexer.errors import IndexerError, TooFewVectorsError
from indexer.layout import RetrieverLayout
from indexer.preparation import Prepared, statistics_since
from indexer.spec import Family, RetrieverSpec
from indexer.stores.vector import VectorStore
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening, WhiteningMode, WhiteningSpec
from indexer.workshop import Workshop, sample_rows

_SEED = 20240229

#: Averages of word vectors have an offset and one large direction; the others are whitened where that is asked for,
#: `fitted` by its teacher.
DEFAULT_WHITENING: Mapping[Family, str] = MappingProxyType({Family.STATIC: "auto", Family.DISTILLED: "auto"})


@dataclass(frozen=True, slots=True)
class Filled:
    """What a filled store holds and what was found on the way.

    `taken_over` says whether its vectors are those of the generation before, but for new texts.
    """

    texts: int
    dimension: int
    factory: str
    whitening: str
    findings: dict[str, Any]
    taken_over: bool = False


def fill(prepared: Prepared, spec: RetrieverSpec, layout: RetrieverLayout, workshop: Workshop) -> Filled:
    """Write one retriever's folder: its encoder, its whitening, its vectors."""
    kept = _kept_whitening(prepared, spec, workshop)
    whitening = kept or _fit_whitening(
        prepared, WhiteningSpec.parse(spec.get("whitening", DEFAULT_WHITENING.get(spec.family, "none"))), workshop
    )

    def project(block: Vectors) -> Vectors:
        return block if whitening is None else normalize(whitening.transform(block))

    earlier = _earlier_vectors(prepared, spec, whitening, workshop)

    def blocks() -> Iterator[Vectors]:
        if earlier is not None:
            new = map(project, prepared.some(np.flatnonzero(workshop.earlier_rows < 0)))
            return _merged(earlier, workshop.earlier_rows, new)
        return map(project, prepared.blocks())

    unknown: list[NDArray[np.int64]] = []
    sample = RowSample(sample_rows(workshop.documents.texts, SAMPLE))

    def noted_blocks() -> Iterator[Vectors]:
        seen = 0
        for block in sample.watch(blocks()):
            unknown.append(np.flatnonzero(~block.any(axis=1)) + seen)
            seen += len(block)
            yield block

    dimension = prepared.dimension if whitening is None else whitening.dimension
    total = workshop.documents.texts
    factory = factory_of(spec) or choose_factory(total, dimension)
    findings: dict[str, Any] = {}
    if factory != "Flat":
        store, findings = _fill_approximate(factory, blocks, noted_blocks, prepared, whitening, spec, workshop)
        factory = str(findings["approximation"]["factory"])
    else:
        store = VectorStore.build(noted_blocks(), dimension)
    store.save(layout.vectors)
    _save_unknown(unknown, layout)
    findings |= {"count": store.size, **_background(sample)}
    if whitening is not None:
        whitening.save(layout.whitening)
        findings["whitening"] = _whitening_findings(whitening)
        if kept is not None:
            findings |= statistics_since(spec.name, workshop)
        for note in whitening.notes:
            workshop.note(f"{spec.name}: {note}")
    _keep_encoder(prepared, layout.encoder)
    mark = "" if whitening is None else whitening.fingerprint
    return Filled(store.size, dimension, factory, mark, findings, earlier is not None)


def _background(sample: RowSample) -> dict[str, Any]:
    """Return what scores are compared with, as a finding; none where there are not two texts."""
    found = CosineBackground.of(random_cosines(sample.vectors, np.random.default_rng(_SEED)))
    return {} if found is None else {"random_cosines": found.to_json()}


def _whitening_findings(whitening: Whitening) -> dict[str, Any]:
    return {
        "shrinkage": whitening.shrinkage,
        "rank": whitening.dimension,
        "anisotropy": whitening.anisotropy,
        "general_anisotropy": whitening.general_anisotropy,
        "fitted_on": whitening.count,
        "notes": list(whitening.notes),
    }


def factory_of(spec: RetrieverSpec) -> str:
    """Return the FAISS factory string a retriever asks for, "" where none; `;` stands for `,` inside a notation."""
    return spec.get("factory").replace(";", ",")


def _fill_approximate(
    factory: str,
    blocks: Callable[[], Iterator[Vectors]],
    noted_blocks: Callable[[], Iterator[Vectors]],
    prepared: Prepared,
    whitening: Whitening | None,
    spec: RetrieverSpec,
    workshop: Workshop,
) -> tuple[VectorStore, dict[str, Any]]:
    """Fill an approximate index, choose its effort and measure its recall; Flat where it cannot be trained."""
    dimension = prepared.dimension if whitening is None else whitening.dimension
    queries = prepared.encoder.encode(workshop.fragments, role=Role.QUERY)
    best = ExactBest(queries if whitening is None else normalize(whitening.transform(queries)))
    try:
        training = _sample(blocks(), workshop.documents.texts, training_rows(factory))
        store = VectorStore.build(best.watch(noted_blocks()), dimension, factory=factory, training=training)
    except TooFewVectorsError as error:
        workshop.note(f"{spec.name}: {error}; used Flat instead, which is exact")
        store = VectorStore.build(noted_blocks(), dimension)
        return store, {"approximation": {"factory": "Flat", "asked": factory}}
    tuning = tune(store, best)
    if not tuning.reached:
        workshop.note(
            f"{spec.name}: {factory} reaches recall@{DEPTH} {tuning.recall:.3f} of exact search,"
            f" below the target {tuning.target:g}; Flat or the kind chosen without --factory would reach it"
        )
    return store, {
        "approximation": {
            "factory": factory,
            "effort": tuning.effort,
            "most_effort": store.most_effort,
            "recall@10": round(tuning.recall, 4),
            "queries": tuning.queries,
            "target": tuning.target,
        }
    }


def _earlier_vectors(
    prepared: Prepared, spec: RetrieverSpec, whitening: Whitening | None, workshop: Workshop
) -> VectorStore | None:
    """Return the vectors of the generation before, where they are what would be computed again."""
    if workshop.frozen is None:
        return None
    mark = "" if whitening is None else whitening.fingerprint
    return workshop.frozen.vectors(spec, prepared.encoder.fingerprint, mark)


def _merged(earlier: VectorStore, places: NDArray[np.int64], new: Iterator[Vectors]) -> Iterator[Vectors]:
    """Yield the vectors of all texts: from the rows of an earlier store, and where that is -1 the next new ones."""
    waiting = np.zeros((0, earlier.dimension), np.float32)
    for start in range(0, len(places), BLOCK):
        here = places[start : start + BLOCK]
        wanted = int((here < 0).sum())
        while len(waiting) < wanted:
            waiting = np.concatenate([waiting, next(new)])
        block = np.empty((len(here), earlier.dimension), np.float32)
        block[here >= 0] = earlier.reconstruct(here[here >= 0])
        block[here < 0], waiting = waiting[:wanted], waiting[wanted:]
        yield block


def _kept_whitening(prepared: Prepared, spec: RetrieverSpec, workshop: Workshop) -> Whitening | None:
    """Return the whitening of an earlier build, where its statistics stay."""
    path = None if workshop.frozen is None else workshop.frozen.whitening_file(spec, prepared.encoder.fingerprint)
    try:
        return None if path is None else Whitening.load(path)
    except IndexerError:
        return None  # of another format: it is fitted anew


def _fit_whitening(prepared: Prepared, spec: WhiteningSpec, workshop: Workshop) -> Whitening | None:
    if spec.mode is WhiteningMode.NONE or not workshop.documents.texts:
        return None
    general = prepared.general() if spec.mode is WhiteningMode.AUTO else None
    return Whitening.fit(prepared.blocks(), spec, general=general)


def _save_unknown(parts: list[NDArray[np.int64]], layout: RetrieverLayout) -> None:
    rows = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if len(rows):
        np.save(layout.unknown, rows, allow_pickle=False)


def _sample(blocks: Iterator[Vectors], total: int, most: int) -> Vectors:
    """Return at most `most` of the rows, evenly spread."""
    step = -(-max(1, total) // most)
    seen, kept = 0, []
    for block in blocks:
        kept.append(block[(-seen) % step :: step])
        seen += len(block)
    return np.concatenate(kept) if kept else np.zeros((0, 1), np.float32)


def _keep_encoder(prepared: Prepared, folder: Path) -> None:
    """Put what encoding queries needs into the retriever's folder; links where it lies on disk already."""
    folder.mkdir()
    if prepared.encoder_folder is None:
        prepared.encoder.save(folder)
        return
    for source in sorted(prepared.encoder_folder.rglob("*")):
        target = folder / source.relative_to(prepared.encoder_folder)
        if source.is_dir():
            target.mkdir(exist_ok=True)
            continue
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, target)
