"""Why a contextual retriever scored a document so. Its vector is no sum over words, so nothing here sums to the score.

Two views instead: what the score loses when a word is left out, each answer costing a forward pass; and which
document word each query word lies nearest to.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from indexer.encoder import Encoder, Role
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening
from search.diagnostics.explain import WordShare
from search.diagnostics.words import WORD

if TYPE_CHECKING:
    from indexer.contextual.states import StateReader

_MOST_WORDS = 100


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentModel:
    """A model whose states are compared word by word.

    Attributes
    ----------
    reader
        The model.
    layer
        The layer whose states are compared; -1 is the last.
    query_prompt, document_prompt
        What the encoder puts before a text; it is read, and not aligned.
    """

    reader: "StateReader"
    layer: int = -1
    query_prompt: str = ""
    document_prompt: str = ""


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
        For each query word the nearest document word, in order of the query; empty where no model was given to look
        into.
    mean_cosine
        Mean cosine over all pairs of a query word and a document word: what an alignment has to exceed. None without
        an alignment.
    left_out
        Distinct document words that were not tried.
    passes
        Texts that went through the model for this answer.
    seconds
        What they took, in seconds.
    notes
        Why something is missing.
    """

    score: float
    query_words: tuple[WordShare, ...]
    document_words: tuple[WordShare, ...]
    alignment: tuple[Alignment, ...]
    mean_cosine: float | None
    left_out: int
    passes: int
    seconds: float
    notes: tuple[str, ...] = ()


def explain_context(
    query: str,
    text: str,
    encoder: Encoder,
    *,
    whitening: Whitening | None = None,
    inside: AlignmentModel | None = None,
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
    inside
        The encoder's model, for the alignment of words.
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
    alignment, mean_cosine = ((), None) if inside is None else _align(query, text, inside)
    return ContextExplanation(
        score=score,
        query_words=_losses(query_words, score - query_vectors[1:] @ text_vectors[0]),
        document_words=_losses(tried, score - text_vectors[1:] @ query_vectors[0]),
        alignment=alignment,
        mean_cosine=mean_cosine,
        left_out=len(text_words) - len(tried),
        passes=len(queries) + len(texts) + (0 if mean_cosine is None else 2),
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


def _align(query: str, text: str, inside: AlignmentModel) -> tuple[tuple[Alignment, ...], float | None]:
    """Return the alignment and the mean cosine of all pairs; two forward passes, or none for a text without words."""
    if not (WORD.search(query) and WORD.search(text)):
        return (), None
    from search.diagnostics.anisotropy import unit

    query_words, query_vectors = _word_states(inside.query_prompt, query, inside)
    text_words, text_vectors = _word_states(inside.document_prompt, text, inside)
    if not (query_words and text_words):
        return (), None
    cosines = unit(query_vectors) @ unit(text_vectors).T
    nearest = cosines.argmax(axis=1)
    alignment = tuple(
        Alignment(word, text_words[column], float(cosines[row, column]))
        for row, (word, column) in enumerate(zip(query_words, nearest.tolist(), strict=True))
    )
    return alignment, float(cosines.mean())


def _word_states(prompt: str, text: str, inside: AlignmentModel) -> tuple[list[str], Vectors]:
    """Return the words that the model reads, and the (m, d) means of their pieces' states."""
    from indexer.contextual.states import Span, rows_of

    states = inside.reader.read(prompt + text)
    words, vectors = [], []
    for match in WORD.finditer(prompt + text, len(prompt)):
        rows = rows_of(states.offsets, Span(*match.span()))
        if len(rows):
            words.append(match.group())
            vectors.append(states.states[inside.layer, rows].mean(axis=0))
    return words, np.array(vectors, dtype=np.float32).reshape(len(words), states.states.shape[2])
