"""Why a contextual retriever scored a document so. Its vector is no sum over words, so nothing here sums to the score.

Two views instead: what the score loses when a word is left out, each answer costing a forward pass; and which
document word each query word lies nearest to.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexer.contextual.states import Span, StateReader, rows_of
from indexer.encoder import Encoder, Role
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening
from search.diagnostics.anisotropy import unit
from search.diagnostics.explain import WordShare
from search.diagnostics.occurrences import WORD

_MOST_WORDS = 100


class Alignment(NamedTuple):
    """A query word, the document word nearest to it, and the cosine between their vectors."""

    query_word: str
    document_word: str
    cosine: float


@dataclass(frozen=True, slots=True)
class ContextExplanation:
    """What leaving words out does to a score.

    Attributes
    ----------
    score
        Cosine of query and text.
    query_words, document_words
        For each distinct word, the score less the score without it (all its repetitions left out), largest first.
        A word below zero holds the score down.
    alignment
        For each query word the nearest document word; empty where no model was given to look into.
    left_out
        Distinct document words that were not tried.
    passes
        Texts that went through the model for this answer.
    seconds
        What they took, in seconds.
    """

    score: float
    query_words: tuple[WordShare, ...]
    document_words: tuple[WordShare, ...]
    alignment: tuple[Alignment, ...]
    left_out: int
    passes: int
    seconds: float


def explain_context(
    query: str,
    text: str,
    encoder: Encoder,
    *,
    whitening: Whitening | None = None,
    reader: StateReader | None = None,
    layer: int = -1,
    most_words: int = _MOST_WORDS,
) -> ContextExplanation:
    """Leave the words of a query and of a text (a document's best passage) out, one after another.

    Parameters
    ----------
    query, text
        What was compared.
    encoder
        The retriever's.
    whitening
        The retriever's.
    reader
        The model, for the alignment of words.
    layer
        The layer whose states are aligned; -1 is the last.
    most_words
        Most distinct words of the text that are tried, in order of the text.
    """
    started = time.perf_counter()
    query_words, text_words = _distinct_words(query), _distinct_words(text)
    tried = text_words[:most_words]
    queries = [query, *(_without(query, word) for word in query_words)]
    texts = [text, *(_without(text, word) for word in tried)]
    query_vectors = _project(encoder.encode(queries, role=Role.QUERY), whitening)
    text_vectors = _project(encoder.encode(texts), whitening)
    score = float(query_vectors[0] @ text_vectors[0])
    alignment = () if reader is None else _align(query, text, reader, layer)
    return ContextExplanation(
        score=score,
        query_words=_losses(query_words, score - query_vectors[1:] @ text_vectors[0]),
        document_words=_losses(tried, score - text_vectors[1:] @ query_vectors[0]),
        alignment=alignment,
        left_out=len(text_words) - len(tried),
        passes=len(queries) + len(texts) + (0 if reader is None else 2),
        seconds=time.perf_counter() - started,
    )


def _project(vectors: Vectors, whitening: Whitening | None) -> Vectors:
    return vectors if whitening is None else normalize(whitening.transform(vectors))


def _distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(word.lower() for word in WORD.findall(text)))


def _without(text: str, word: str) -> str:
    return WORD.sub(lambda match: "" if match.group().lower() == word else match.group(), text)


def _losses(words: Sequence[str], losses: Vectors) -> tuple[WordShare, ...]:
    shares = [WordShare(word, float(loss)) for word, loss in zip(words, losses, strict=True)]
    return tuple(sorted(shares, key=lambda share: -share.share))


def _align(query: str, text: str, reader: StateReader, layer: int) -> tuple[Alignment, ...]:
    if not (query.strip() and text.strip()):
        return ()
    query_words, query_vectors = _word_states(query, reader, layer)
    text_words, text_vectors = _word_states(text, reader, layer)
    if not (query_words and text_words):
        return ()
    cosines = unit(query_vectors) @ unit(text_vectors).T
    nearest = cosines.argmax(axis=1)
    return tuple(
        Alignment(word, text_words[column], float(cosines[row, column]))
        for row, (word, column) in enumerate(zip(query_words, nearest.tolist(), strict=True))
    )


def _word_states(text: str, reader: StateReader, layer: int) -> tuple[list[str], Vectors]:
    """Return the words that the model reads, and the (m, d) means of their pieces' states."""
    states = reader.read(text)
    words, vectors = [], []
    for match in WORD.finditer(text):
        rows = rows_of(states.offsets, Span(*match.span()))
        if len(rows):
            words.append(match.group())
            vectors.append(states.states[layer, rows].mean(axis=0))
    return words, np.array(vectors, dtype=np.float32).reshape(len(words), states.states.shape[2])
