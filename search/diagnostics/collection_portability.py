"""A collection asked in vectors of another space: another layer's, another model's, or the same ones unwhitened."""

from collections.abc import Collection as Rows
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.collection import Collection
from corpora.progress import Progress
from indexer.vectors import as_float32, normalize
from indexer.whitening import Whitening
from indexer.whitening_spec import WhiteningSpec
from search.diagnostics.layer_models import open_layer_model
from search.diagnostics.layer_survey import pooled_states
from search.diagnostics.portability import Portability, SharedTexts, portability
from search.errors import DiagnosisError
from search.json_values import json_value

#: Texts that maps are fitted on at most.
_SHARED_TEXTS = 1500

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ForeignQueries:
    """Queries of one space among documents of another.

    Attributes
    ----------
    name
        Whose vectors the queries have.
    own
        Recall among documents of their own space.
    asked
        Recall among the foreign documents.
    """

    name: str
    own: float
    asked: Portability

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        figures: dict[str, Any] = json_value(self.asked)
        return {"name": self.name, "own": self.own, **figures}


@dataclass(frozen=True, slots=True)
class CollectionPortability:
    """Documents in a model's last layer, asked in every layer's vectors; `layers` holds them from 0 to L.

    `unwhitened` asks documents that are whitened in vectors that are not; `other` asks in another model's last layer.
    """

    model: str
    layers: tuple[ForeignQueries, ...]
    unwhitened: ForeignQueries
    other: ForeignQueries | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "model": self.model,
            "layers": [{"layer": layer, **found.to_json()} for layer, found in enumerate(self.layers)],
            "unwhitened": self.unwhitened.to_json(),
            "other_model": None if self.other is None else self.other.to_json(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Texts, the rows of their relevant documents, and which documents maps are fitted on."""

    documents: Sequence[str]
    queries: Sequence[str]
    relevant: Sequence[Rows[int]]
    shared: NDArray[np.int64]
    seed: int

    def states(self, model: str, progress: Progress) -> tuple[Floats, Floats]:
        """Return the (1 + L, n, d) states of documents and (1 + L, q, d) of queries."""
        reader = open_layer_model(model)
        documents = pooled_states(reader, self.documents, "reading the layers of the documents", progress)
        return documents, pooled_states(reader, self.queries, "reading the layers of the queries", progress)

    def ask(self, name: str, own: tuple[Floats, Floats], home: tuple[Floats, Floats]) -> ForeignQueries:
        """Ask the home space's documents in the vectors of another space."""
        by_themselves = portability(own[0], self.relevant, home=own[1], foreign=own[1])
        asked = portability(
            home[0],
            self.relevant,
            home=home[1],
            foreign=own[1],
            shared=SharedTexts(own[0][self.shared], home[0][self.shared]),
            seed=self.seed,
        )
        return ForeignQueries(name, by_themselves.home, asked)


def collection_portability(
    collection: Collection,
    *,
    progress: Progress,
    model: str = "",
    other_model: str = "",
    limit: int | None = None,
    split: str = "test",
    seed: int = 0,
) -> CollectionPortability:
    """Ask the documents of a model's last layer in other vectors, as they are and through fitted rotations.

    The rotations are fitted on documents of the collection, which are known in both spaces.

    Parameters
    ----------
    collection
        Texts with judged queries.
    progress
        Told of the forward passes.
    model, other_model
        Folders or hub ids; the built-in model, and no other one, where there are none.
    limit
        Most documents read.
    split
        Of the judgements.
    seed
        Of the texts that maps are fitted on.

    Raises
    ------
    DiagnosisError
        If the collection has no text or no judged queries.
    """
    documents = [document for document in islice(collection.documents(), limit) if document.searchable_text.strip()]
    qrels = collection.qrels.get(split, {})
    row_of = {document.doc_id: row for row, document in enumerate(documents)}
    asked = {query_id: query.text for query_id, query in collection.queries.items() if query_id in qrels}
    if not documents or not asked:
        message = f"{collection.name} needs documents and judged queries ({split}) to ask across layers"
        raise DiagnosisError(message)
    texts = _Asked(
        [document.searchable_text for document in documents],
        list(asked.values()),
        [
            {row_of[doc_id] for doc_id, grade in qrels[query_id].items() if grade > 0 and doc_id in row_of}
            for query_id in asked
        ],
        np.sort(np.random.default_rng(seed).permutation(len(documents))[:_SHARED_TEXTS]),
        seed,
    )
    states, queries = texts.states(model, progress)
    last = len(states) - 1
    home = (states[last], queries[last])
    progress.start("fitting rotations", None, "spaces")
    try:
        layers = tuple(texts.ask(f"layer {layer}", (states[layer], queries[layer]), home) for layer in range(last + 1))
        units = [normalize(as_float32(side)) for side in home]
        whitening = Whitening.fit(units[0], WhiteningSpec())
        whitened = [normalize(whitening.transform(side)) for side in units]
        name = f"layer {last}, not whitened, among whitened ones"
        unwhitened = texts.ask(name, (units[0], units[1]), (whitened[0], whitened[1]))
    finally:
        progress.finish()
    other = None
    if other_model:
        foreign, asking = texts.states(other_model, progress)
        other = texts.ask(other_model, (foreign[-1], asking[-1]), home)
    return CollectionPortability(model or "all-MiniLM-L6-v2", layers, unwhitened, other)


def portability_rows(found: CollectionPortability) -> Iterator[Mapping[str, str]]:
    """Yield a row a space: at home, as it is, and through rotations fitted on more and more texts."""
    spaces = [*found.layers, found.unwhitened, *([found.other] if found.other is not None else [])]
    for space in spaces:
        asked = space.asked
        yield {
            "queries from": space.name,
            "at home": f"{space.own:.3f}",
            "as they are": "-" if asked.foreign is None else f"{asked.foreign:.3f}",
            **{f"map on {each.texts:,}": f"{each.recall:.3f}" for each in asked.mapped},
        }


def portability_notes(found: CollectionPortability) -> Iterator[str]:
    """Yield what the columns are."""
    asked = found.layers[-1].asked
    yield (
        f"documents: {asked.documents:,}, in layer {len(found.layers) - 1} of {found.model}; {asked.queries:,} judged "
        f"queries; a random order has {asked.chance:.3f}"
    )
    yield "at home: among documents of the queries' own space; as they are: the same numbers among the foreign ones"
    yield (
        "map on n: through the best rotation (orthogonal Procrustes) fitted on n texts known in both spaces; "
        "on few texts it is worse than none"
    )
