"""A row a layer: how anisotropic, how contextual, and how good at retrieval, raw and whitened."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corpora.judgements import Qrels
from corpora.progress import Progress, Silent
from indexer.cosine_background import random_cosines
from indexer.vectors import Vectors, normalize
from indexer.whitening import VectorStatistics, Whitening, WhiteningSpec
from indexer.whitening_strength import GeneralSpace, GeneralTexts, general_texts
from search.diagnostics.layers import Contextuality, contextuality, intra_sentence_similarity
from search.evaluation.measures import evaluate_run, mean_scores
from search.ranking import Ranking, Run, ScoredDocument, ordered

Floats = NDArray[np.float32]

MEASURE = "nDCG@10"
_DEPTH = 100
_BLOCK_TEXTS = 512
_SENTENCES = 1000
_WORDS = 300
_FEWEST_CONTEXTS = 5
_MOST_CONTEXTS = 20
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LONGEST_SENTENCE = 60


class LayerReader(Protocol):
    """A model whose layers can be read, all of them from one forward pass."""

    def layer_states(self, texts: Sequence[str]) -> Floats:
        """Return the (1 + L, n, d) states of texts, pooled over their pieces; zeros for a text without any."""

    def words(self, text: str) -> Sequence[str]:
        """Return the w words of a text that the model reads."""

    def word_states(self, texts: Sequence[str]) -> Iterator[tuple[int, Floats]]:
        """Yield, in any order, each text's number and the (1 + L, w, d) states of its words."""


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """What is searched and judged.

    Attributes
    ----------
    doc_ids, texts
        n documents and what is read of them.
    queries
        Query id -> text.
    qrels
        Judgements; queries without any are not asked.
    """

    doc_ids: Sequence[str]
    texts: Sequence[str]
    queries: Mapping[str, str]
    qrels: Qrels


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer; figures are None where there was nothing to measure (no judgements, no repeated word).

    Attributes
    ----------
    layer
        0 is what the embeddings give.
    mean_cosine
        Mean cosine of random texts of the collection.
    general_cosine
        The same for general sentences.
    contextuality
        Ethayarajh's measures.
    raw, whitened
        Mean nDCG@10 of the layer's mean-pooled states, and of the same whitened by `auto`.
    shrinkage, share
        e and a that `auto` settled on.
    notes
        What whitening has to say.
    """

    layer: int
    mean_cosine: float
    general_cosine: float | None
    contextuality: Contextuality
    raw: float | None
    whitened: float | None
    shrinkage: float
    share: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        found = self.contextuality
        return {
            "layer": self.layer,
            "mean_cosine": self.mean_cosine,
            "general_cosine": self.general_cosine,
            "self_similarity": _number(found.adjusted_self_similarity),
            "intra_sentence": _number(found.adjusted_intra_sentence),
            "explained_static": _number(found.adjusted_explained_static),
            "unadjusted": {
                "self_similarity": _number(found.self_similarity),
                "intra_sentence": _number(found.intra_sentence),
                "explained_static": _number(found.explained_static),
                "random_cosine": _number(found.random_cosine),
                "random_explained": _number(found.random_explained),
            },
            "raw": {MEASURE: self.raw},
            "whitened": {MEASURE: self.whitened},
            "whitening": {"shrinkage": self.shrinkage, "share": self.share, "notes": list(self.notes)},
        }


def survey_layers(
    reader: LayerReader,
    collection: JudgedTexts,
    rng: np.random.Generator,
    *,
    background: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[LayerRow]:
    """Return a row for each layer of a model over a collection.

    Parameters
    ----------
    reader
        The model.
    collection
        At least one text.
    rng
        Chooses sentences, words and pairs.
    background
        General texts, by which whitening sets its strength.
    progress
        Told of the forward passes.
    """
    progress = progress or Silent()
    documents = pooled_states(reader, collection.texts, "reading the layers of the documents", progress)
    asked = {query: text for query, text in collection.queries.items() if collection.qrels.get(query)}
    queries = (
        pooled_states(reader, list(asked.values()), "reading the layers of the queries", progress) if asked else None
    )
    general = general_texts(background)
    spaces = _general_spaces(reader, general, len(documents), progress)
    contexts = _contextuality(reader, collection.texts, len(documents), rng, progress)
    rows = []
    for layer, (vectors, space) in enumerate(zip(documents, spaces, strict=True)):
        units = normalize(vectors)
        whitening = Whitening.fit(VectorStatistics.gather(units), WhiteningSpec(), general=space)
        raw = whitened = None
        if queries is not None:
            asking = normalize(queries[layer])
            raw = _quality(asking, units, asked, collection)
            asking, found = normalize(whitening.transform(asking)), normalize(whitening.transform(units))
            whitened = _quality(asking, found, asked, collection)
        cosines = random_cosines(units, rng)
        rows.append(
            LayerRow(
                layer,
                float(cosines.mean()) if len(cosines) else 0.0,
                whitening.general_anisotropy,
                contexts[layer],
                raw,
                whitened,
                whitening.shrinkage,
                whitening.share,
                whitening.notes,
            )
        )
    return rows


def pooled_states(reader: LayerReader, texts: Sequence[str], task: str, progress: Progress) -> Floats:
    """Return the (1 + L, n, d) pooled states of texts, in blocks of like length."""
    progress.start(task, len(texts), "texts")
    # Texts of like length go together, whatever the reader does inside a block.
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]), reverse=True)
    out: Floats | None = None
    try:
        for at in range(0, len(order), _BLOCK_TEXTS):
            block = order[at : at + _BLOCK_TEXTS]
            states = reader.layer_states([texts[number] for number in block])
            if out is None:
                out = np.zeros((states.shape[0], len(texts), states.shape[2]), np.float32)
            out[:, block] = states
            progress.advance(len(block))
    finally:
        progress.finish()
    return out if out is not None else reader.layer_states([""])[:, :0]


def _general_spaces(
    reader: LayerReader, general: GeneralTexts, layers: int, progress: Progress
) -> list[GeneralSpace | None]:
    if not general.passages or not general.sentences:
        return [None] * layers
    both = [
        pooled_states(reader, texts, f"reading the layers of general {name}", progress)
        for name, texts in (("texts", general.passages), ("sentences", general.sentences))
    ]
    return [GeneralSpace.measure(passages, sentences) for passages, sentences in zip(*both, strict=True)]


def _contextuality(
    reader: LayerReader, texts: Sequence[str], layers: int, rng: np.random.Generator, progress: Progress
) -> list[Contextuality]:
    sentences = _sentences(texts, rng)
    words_of = [list(reader.words(sentence)) for sentence in sentences]
    chosen = _chosen_words(words_of, rng)
    found: dict[str, list[Floats]] = {word: [] for word in chosen}
    random: list[Floats] = []
    inside: list[list[float]] = []
    progress.start("reading the layers of words", len(sentences), "sentences")
    try:
        for number, states in reader.word_states(sentences):
            progress.advance()
            words = words_of[number]
            if not words:
                continue
            inside.append([intra_sentence_similarity(layer) for layer in states])
            random.append(states[:, int(rng.integers(len(words)))])
            for word in dict.fromkeys(words):
                if word in found and len(found[word]) < _MOST_CONTEXTS:
                    found[word].append(states[:, words.index(word)])
    finally:
        progress.finish()
    return [
        contextuality(
            [np.stack([states[layer] for states in places]) for places in found.values() if places],
            np.stack([states[layer] for states in random]) if random else np.zeros((0, 1), np.float32),
            [values[layer] for values in inside],
            rng,
        )
        for layer in range(layers)
    ]


def _sentences(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    some = [texts[number] for number in rng.permutation(len(texts))[:_SENTENCES].tolist()]
    split = [part for text in some for part in _SENTENCE_END.split(text) if 3 < len(part.split()) <= _LONGEST_SENTENCE]
    sentences = list(dict.fromkeys(split))
    return [sentences[number] for number in sorted(rng.permutation(len(sentences))[:_SENTENCES].tolist())]


def _chosen_words(words_of: Sequence[Sequence[str]], rng: np.random.Generator) -> list[str]:
    contexts = Counter(word for words in words_of for word in set(words) if any(map(str.isalpha, word)))
    often = sorted(word for word, count in contexts.items() if count >= _FEWEST_CONTEXTS)
    return [often[number] for number in sorted(rng.permutation(len(often))[:_WORDS].tolist())]


def _quality(queries: Vectors, documents: Vectors, asked: Mapping[str, str], collection: JudgedTexts) -> float:
    run: Run = {}
    for at, query in enumerate(asked):
        run[query] = _ranking(documents @ queries[at], collection.doc_ids)
    qrels = {query: collection.qrels[query] for query in asked}
    return next(iter(mean_scores(evaluate_run(run, qrels, MEASURE)).values()))


def _ranking(scores: Vectors, doc_ids: Sequence[str]) -> Ranking:
    best = np.arange(len(scores))
    if len(scores) > _DEPTH:
        # All that tie with the hundredth stay in, so that ties are settled by id and not by chance.
        edge = np.partition(scores, -_DEPTH)[-_DEPTH]
        best = np.flatnonzero(scores >= edge)
    return ordered([ScoredDocument(doc_ids[row], float(scores[row])) for row in best.tolist()])[:_DEPTH]


def _number(value: float) -> float | None:
    return None if isnan(value) else value
