"""No judgements? Still an answer: how far retrievers agree, and how they find documents by their own first words."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Progress
from corpora.read_log import ReadLog
from indexer.build import BuildSettings, build_index
from indexer.layout import IndexLayout
from indexer.manifest import Manifest
from search.errors import NoJudgementsError
from search.evaluation.evaluation import Evaluation
from search.evaluation.measure_names import DEFAULT_MEASURES
from search.evaluation.unjudged import KNOWN_ITEM_WARNING, Agreement, agreement, known_items, rest_of
from search.measuring import measure_index
from search.retrieval.searcher import Searcher

QUERIES = 200


@dataclass(frozen=True, slots=True)
class Unjudged:
    """What can be said without judgements: agreement of pairs of retrievers, and known-item search."""

    agreements: tuple[Agreement, ...]
    evaluation: Evaluation
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation's JSON with the agreements and the warning beside it."""
        found = self.evaluation.to_json()
        return {**found, "agreement": [pair.to_json() for pair in self.agreements], "notes": list(self.notes)}


def evaluate_unjudged(
    searcher: Searcher,
    *,
    progress: Progress,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    count: int = QUERIES,
    seed: int = 0,
) -> Unjudged:
    """Cut queries from the collection's own documents, index the rest, and measure the retrievers on them.

    Raises
    ------
    NoJudgementsError
        If no document can be cut into a query and a rest.
    """
    documents = searcher.index.documents
    items = known_items(documents.iter_documents(), count, np.random.default_rng(seed))
    if not items.queries:
        message = (
            "no document of this index has a title or first sentence to ask for; judge some queries: twindex judge"
        )
        raise NoJudgementsError(message)

    def rest(_log: ReadLog) -> Iterator[Document]:
        return rest_of(documents.iter_documents())

    manifest = searcher.index.manifest
    collection = Collection(manifest.collection, "known items", rest, items.queries, {"known-items": items.qrels})
    with tempfile.TemporaryDirectory(prefix="twindex-") as folder:
        root = Path(folder) / "index"
        _bring_encoders(searcher.index.root, root)
        build_index(collection, root, _settings(manifest, searcher.names), progress=progress)
        inner = Searcher.open(root, searcher.names)
        try:
            evaluation, runs = measure_index(inner, progress=progress, split="known-items", measures=measures)
        finally:
            inner.close()
    notes = (
        KNOWN_ITEM_WARNING,
        f"{len(items.queries):,} queries cut from {items.documents:,} documents ({items.usable:,} could be cut)",
        *evaluation.notes(),
    )
    return Unjudged(tuple(agreement(runs)), evaluation, notes)


def _settings(manifest: Manifest, names: Sequence[str]) -> BuildSettings:
    window = manifest.window
    needed = set(names).union(*(manifest.members(name) for name in names))
    return BuildSettings(
        tuple(record.spec for record in manifest.retrievers if record.name in needed),
        window=None if window["whole"] else int(window["budget"]) + 2,
        overlap=int(window["overlap"]),
        title_prefix=bool(window["title_prefix"]),
    )


def _bring_encoders(source: Path, target: Path) -> None:
    """Copy the compiled encoders of an index, so that they need not be made again; not the texts they encoded."""
    workshop = IndexLayout(source).workshop
    if workshop.exists():
        ignore = shutil.ignore_patterns("texts-*", "words-*")
        shutil.copytree(workshop, IndexLayout(target).workshop, ignore=ignore)


def agreement_rows(agreements: Sequence[Agreement]) -> Iterator[dict[str, str]]:
    """Yield a row a pair of retrievers for a table."""
    for pair in agreements:
        yield {
            "pair": f"{pair.first} / {pair.second}",
            "overlap@10": f"{pair.overlap:.2f}",
            "RBO (p = 0.9)": f"{pair.rank_biased_overlap:.2f}",
            "Kendall's tau": "-" if pair.kendall_tau is None else f"{pair.kendall_tau:.2f}",
            "same first": f"{pair.same_first:.0%}",
        }
