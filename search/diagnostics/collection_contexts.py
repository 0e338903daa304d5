"""Why there is no lookup table, for a collection and a model: contexts counted, and every way to a vector weighed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from corpora.collection import Collection
from corpora.progress import Progress
from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.states import StateReader
from indexer.static.tokenizer import words as tokenize
from search.diagnostics.contexts import ContextSurvey, TableCosts, survey_contexts
from search.diagnostics.word_senses import open_reader, static_words
from search.errors import DiagnosisError

_TIMED_TEXTS = 16


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """What computing vectors instead of looking them up takes: medians over `texts` texts, one at a time.

    A pass gives the vectors of all words of a text. `milliseconds` are those of torch in fp32; `words` is the length.
    """

    texts: int
    words: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class ContextReport:
    """Contexts of a collection, and what tables of them would weigh beside what there is.

    Attributes
    ----------
    collection, model
        Whose contexts, and whose vectors.
    dimension, static_dimension
        Of the model's vectors, and of the static table's.
    survey
        The contexts by window.
    costs
        In bytes.
    forward
        The pass that takes the table's place.
    """

    collection: str
    model: str
    dimension: int
    static_dimension: int
    survey: ContextSurvey
    costs: TableCosts
    forward: ForwardPass


def collection_contexts(
    collection: Collection, *, progress: Progress, model: str = "", limit: int | None = None, seed: int = 0
) -> ContextReport:
    """Count the contexts of a collection's words, and weigh tables of them against the model.

    Parameters
    ----------
    collection
        The texts, streamed.
    progress
        Told of each text.
    model
        A folder or hub id; the built-in model where there is none.
    limit
        Most documents read.
    seed
        Of the texts that the forward pass is timed on.

    Raises
    ------
    DiagnosisError
        If the collection has no words.
    """
    reader = open_reader(model)
    drawn: list[str] = []
    texts = _drawing(collection, limit, drawn, np.random.default_rng(seed), progress)
    survey = survey_contexts(texts)
    if not survey.tokens:
        message = f"{collection.name} has no words in {survey.texts} texts; there is nothing to count"
        raise DiagnosisError(message)
    forward = _timed(drawn, reader)
    static_dimension = static_words().dimension
    costs = survey.costs(
        static_dimension=static_dimension,
        dimension=reader.dimension,
        model_bytes=sum(path.stat().st_size for path in find_checkpoint(TransformerSpec(model=model)).weight_files),
        forward_ms=forward.milliseconds,
    )
    return ContextReport(collection.name, reader.name, reader.dimension, static_dimension, survey, costs, forward)


def _drawing(
    collection: Collection, limit: int | None, drawn: list[str], rng: np.random.Generator, progress: Progress
) -> Iterator[str]:
    """Yield the texts, and draw some of them on the way, each as likely (Vitter's algorithm R)."""
    progress.start("counting contexts", limit, "texts")
    seen = 0
    try:
        for document in islice(collection.documents(), limit):
            text = document.searchable_text
            if text.strip():
                seen += 1
                if len(drawn) < _TIMED_TEXTS:
                    drawn.append(text)
                elif (slot := int(rng.integers(seen))) < _TIMED_TEXTS:
                    drawn[slot] = text
            yield text
            progress.advance()
    finally:
        progress.finish()


def _timed(texts: list[str], reader: StateReader) -> ForwardPass:
    reader.pooled_states(texts[:1])  # the first pass makes preparations
    took = []
    for text in texts:
        started = time.perf_counter()
        reader.pooled_states([text])
        took.append((time.perf_counter() - started) * 1000)
    lengths = [len(tokenize(text)) for text in texts]
    return ForwardPass(len(texts), int(np.median(lengths)), float(np.median(took)))
