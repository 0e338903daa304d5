"""What a retriever's vectors take, whichever build made them: tokens, multiply-adds, and seconds of earlier builds.

An update encodes what is new and takes over the rest. Its own seconds alone would say that a transformer indexes a
million texts in the time of ten; so what was taken over keeps what it cost when it was made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.arithmetic import averaging_multiply_adds
from indexer.cost import Cost
from indexer.encoder import Encoder
from indexer.encoder_making import shape_of
from indexer.manifest import RetrieverRecord
from indexer.prior import Prior
from indexer.spec import RetrieverSpec
from indexer.static.averaging import AveragedEncoder
from indexer.workshop import Made, Work, Workshop, word_digests


class Load(NamedTuple):
    """What encoding all texts takes; None where the arithmetic cannot be counted."""

    tokens: int
    multiply_adds: int | None


NO_LOAD = Load(0, None)


def contextual_load(made: Made, spec: RetrieverSpec, workshop: Workshop) -> Load:
    """Return the load of a contextual encoder: pieces read after cutting, special ones and prompts included."""
    counts = workshop.encoded(made).tokens(workshop.digests)
    for row in np.flatnonzero(counts < 0).tolist():
        # Encoded by an earlier version, which did not count.
        counts[row] = made.encoder.count_tokens(list(workshop.documents.iter_texts(np.array([row]))))
    shape = shape_of(spec, made.encoder, trust_pickle=workshop.trust_pickle)
    return Load(int(counts.sum()), None if shape is None else shape.multiply_adds(counts))


def word_load(encoder: Encoder, workshop: Workshop) -> Load:
    """Return the load of an encoder that averages: the words, all occurrences counted, of which it has a vector."""
    if isinstance(encoder, AveragedEncoder):
        statistics = workshop.word_statistics
        known = encoder.vocabulary.ids(list(statistics.words)) >= 0
        return _averaging(encoder, int(statistics.collection_frequency[known].sum()))
    return _averaging(encoder, _count(encoder, workshop.text_blocks()))


def kept_word_load(encoder: Encoder, record: RetrieverRecord, prior: Prior, workshop: Workshop) -> Load:
    """Return the load of an averaging encoder that an earlier build made: its count, less what went, plus what came."""
    before = prior.cost(record.name)
    earlier = None if before.get("multiply_adds") is None else prior.open_documents()
    if earlier is None:
        return _averaging(encoder, _count(encoder, workshop.text_blocks()))
    stayed = workshop.earlier_rows
    try:
        gone = np.setdiff1d(np.arange(earlier.texts, dtype=np.int64), stayed[stayed >= 0])
        less = _count(encoder, ([text] for text in earlier.iter_texts(gone)))
    finally:
        earlier.close()
    more = _count(encoder, workshop.text_blocks(rows=np.flatnonzero(stayed < 0)))
    return _averaging(encoder, int(before["tokens"]) - less + more)


def _count(encoder: Encoder, blocks: Iterable[list[str]]) -> int:
    return sum(encoder.count_tokens(block) for block in blocks)


def _averaging(encoder: Encoder, tokens: int) -> Load:
    return Load(tokens, averaging_multiply_adds(tokens, encoder.dimension))


def reused_seconds(made: Made, workshop: Workshop, *works: Work, rows: NDArray[np.int64] | None = None) -> float:
    """Return what earlier builds took for those kinds of work on an encoder, as far as this build did not do it again.

    `rows` are the texts that count, all where None.
    """
    seconds = made.reused_seconds if Work.MAKING in works else 0.0
    texts, words = workshop.held(made, Work.TEXTS), workshop.held(made, Work.WORDS)
    if Work.TEXTS in works and texts is not None:
        seconds += texts.earlier_seconds(workshop.digests if rows is None else workshop.digests[rows])
    if Work.WORDS in works and words is not None:
        seconds += words.earlier_seconds(word_digests(workshop.word_statistics.words))
    return seconds


def kept_seconds(record: RetrieverRecord, prior: Prior, workshop: Workshop, *, vectors: bool) -> tuple[float, float]:
    """Return the seconds of earlier builds in a kept encoder, and those in vectors that were taken over with it."""
    before = prior.cost(record.name)
    encoder = float(before.get("encoder_seconds", 0.0))
    whole = float(before.get("seconds", 0.0)) + float(before.get("reused_seconds", 0.0))
    stayed = workshop.documents.texts - workshop.new_texts
    share = min(1.0, stayed / max(1, prior.manifest.texts)) if vectors else 0.0
    return encoder, max(0.0, whole - encoder) * share


def earlier_peak(name: str, workshop: Workshop) -> int:
    """Return the most memory that earlier builds took for a retriever of which this one took something over."""
    return 0 if workshop.frozen is None else int(workshop.frozen.cost(name).get("peak_memory_bytes", 0))


def lexical_cost(cost: Cost, documents: int, prior: Prior | None, name: str) -> Cost:
    """Return the cost of a lexical index of so many documents; `cost` counts those that this build indexed."""
    carried = documents - cost.texts
    before: Mapping[str, Any] = prior.cost(name) if prior is not None and carried > 0 else {}
    whole = float(before.get("seconds", 0.0)) + float(before.get("reused_seconds", 0.0))
    share = min(1.0, carried / max(1, prior.manifest.documents)) if prior is not None else 0.0
    peak = max(cost.peak_memory_bytes, int(before.get("peak_memory_bytes", 0)))
    return replace(cost, texts=documents, reused_seconds=whole * share, peak_memory_bytes=peak)
