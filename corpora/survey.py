"""What to know of a collection before paying for an index of it."""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import SeenHashes
from corpora.gaps import Gaps, find_gaps, judged_documents
from corpora.judgements import Qrels, Query
from corpora.language import guess_language
from corpora.progress import Progress, Silent, tracked
from corpora.read_log import ReadLog, ReadSummary

#: Documents drawn for what is too dear to count on all of them.
SAMPLE_DOCUMENTS = 1000


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long documents are, in one unit: mean, smallest, percentiles, largest, sum."""

    total: int
    mean: float
    least: int
    p5: float
    median: float
    p95: float
    most: int


@dataclass(frozen=True, slots=True)
class Share:
    """A part of what was looked at, in [0, 1], and how much that was."""

    share: float
    of: int


@dataclass(frozen=True, slots=True)
class SplitSurvey:
    """One split of judgements: sizes, how often each grade occurs, and what does not fit."""

    name: str
    queries: int
    judgements: int
    grades: tuple[tuple[int, int], ...]
    relevant_per_query: float
    gaps: Gaps


@dataclass(frozen=True, slots=True)
class Survey:
    """A collection in numbers.

    Attributes
    ----------
    characters, words
        Lengths of the searchable texts; words are what white space separates.
    empty, titled
        Documents without searchable text, and with a title.
    repeated_texts
        Documents whose searchable text is equal to an earlier one's.
    languages
        (language, share of the sampled documents), commonest first.
    metadata
        (field, documents that have it), commonest first.
    over_window
        Share of the sampled documents longer than the model's window; None if nobody counted pieces.
    known_words
        Share of the sampled documents' words that the static table knows; None if nobody looked them up.
    sampled
        Documents drawn for languages, window and words.
    queries, splits, background
        Queries, judgements by split, and background texts.
    summary
        What was read, skipped and guessed.
    """

    name: str
    source: str
    documents: int
    characters: Lengths
    words: Lengths
    empty: int
    titled: int
    repeated_texts: int
    languages: tuple[tuple[str, float], ...]
    metadata: tuple[tuple[str, int], ...]
    over_window: Share | None
    known_words: Share | None
    sampled: int
    queries: int
    splits: tuple[SplitSurvey, ...]
    background: int
    summary: ReadSummary
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probes:
    """What a survey cannot know by itself: questions to models, asked of the sampled texts only.

    Attributes
    ----------
    exceeds_window
        texts -> for each, whether it is longer than the model's window.
    count_known_words
        texts -> (words that the static table knows, words), over all texts.
    """

    exceeds_window: Callable[[Sequence[str]], Sequence[bool]] | None = None
    count_known_words: Callable[[Sequence[str]], tuple[int, int]] | None = None


class _Reservoir:
    """A uniform sample of a stream of unknown length (Vitter, 1985, algorithm R), in stream order."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size = size
        self._rng = rng
        self._drawn: dict[int, tuple[int, str]] = {}
        self._seen = 0

    def add(self, text: str) -> None:
        place = self._seen if self._seen < self._size else int(self._rng.integers(self._seen + 1))
        if place < self._size:
            self._drawn[place] = (self._seen, text)
        self._seen += 1

    @property
    def texts(self) -> list[str]:
        return [text for _, text in sorted(self._drawn.values())]


def survey(
    collection: Collection,
    *,
    probes: Probes | None = None,
    log: ReadLog | None = None,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
    sample: int = SAMPLE_DOCUMENTS,
) -> Survey:
    """Read a collection once and return it in numbers.

    Parameters
    ----------
    collection
        What to look at; its documents stream by, none is kept but the sample.
    probes
        What models say of the sampled texts.
    log
        Receives what is skipped.
    progress
        Is told of each document.
    rng
        Draws the sample; seeded with 0 unless given.
    sample
        Documents to draw.

    Raises
    ------
    CorpusError
        If the collection cannot be read.
    """
    log = ReadLog() if log is None else log
    rng = np.random.default_rng(0) if rng is None else rng
    probes = probes or Probes()
    reservoir = _Reservoir(sample, rng)
    tally = _Tally()
    unknown = judged_documents(collection.qrels)
    documents = collection.documents(log)
    for document in tracked(documents, progress or Silent(), "reading", None, "documents"):
        text = document.searchable_text
        tally.add(document, text)
        unknown.discard(document.doc_id)
        reservoir.add(text)
    texts = reservoir.texts
    languages = Counter(map(guess_language, texts))
    return Survey(
        name=collection.name,
        source=collection.source,
        documents=log.documents,
        characters=_lengths(tally.characters),
        words=_lengths(tally.words),
        empty=tally.empty,
        titled=tally.titled,
        repeated_texts=tally.repeated(),
        languages=tuple((language, count / len(texts)) for language, count in languages.most_common()),
        metadata=tuple(tally.metadata.most_common()),
        over_window=_over_window(texts, probes),
        known_words=_known_words(texts, probes),
        sampled=len(texts),
        queries=len(collection.queries),
        splits=tuple(
            _split(name, qrels, find_gaps(_asked_in(name, collection), qrels, unknown))
            for name, qrels in collection.qrels.items()
        ),
        background=sum(1 for _ in collection.background()),
        summary=log.summary(),
        notes=collection.notes,
    )


def _asked_in(split: str, collection: Collection) -> dict[str, Query]:
    """Return the queries but those that only other splits judge: missing here is no gap for them."""
    elsewhere = {query_id for name, qrels in collection.qrels.items() if name != split for query_id in qrels}
    elsewhere -= collection.qrels[split].keys()
    return {query_id: query for query_id, query in collection.queries.items() if query_id not in elsewhere}


class _Tally:
    """Counts over all documents, in a few bytes each."""

    def __init__(self) -> None:
        self.characters = array("q")
        self.words = array("q")
        self.metadata: Counter[str] = Counter()
        self.titled = self.empty = self._repeated = 0
        self._seen = SeenHashes()
        self._hashes = array("q")

    def add(self, document: Document, text: str) -> None:
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.metadata.update(document.metadata.keys())
        self.titled += bool(document.title)
        self.empty += not text.strip()
        self._hashes.append(hash(text))
        if len(self._hashes) >= 4096:
            self.repeated()

    def repeated(self) -> int:
        if self._hashes:
            self._repeated += int(self._seen.add(np.array(self._hashes, np.int64)).sum())
            self._hashes = array("q")
        return self._repeated


def _lengths(lengths: "array[int]") -> Lengths:
    if not lengths:
        return Lengths(0, 0.0, 0, 0.0, 0.0, 0.0, 0)
    values: NDArray[np.int64] = np.array(lengths, np.int64)
    p5, median, p95 = np.percentile(values, [5, 50, 95])
    return Lengths(
        int(values.sum()),
        float(values.mean()),
        int(values.min()),
        float(p5),
        float(median),
        float(p95),
        int(values.max()),
    )


def _over_window(texts: Sequence[str], probes: Probes) -> Share | None:
    if probes.exceeds_window is None or not texts:
        return None
    return Share(sum(map(bool, probes.exceeds_window(texts))) / len(texts), len(texts))


def _known_words(texts: Sequence[str], probes: Probes) -> Share | None:
    if probes.count_known_words is None or not texts:
        return None
    known, words = probes.count_known_words(texts)
    return Share(known / words, words) if words else None


def _split(name: str, qrels: Qrels, gaps: Gaps) -> SplitSurvey:
    grades = Counter(grade for judged in qrels.values() for grade in judged.values())
    relevant = sum(count for grade, count in grades.items() if grade > 0)
    return SplitSurvey(
        name,
        len(qrels),
        grades.total(),
        tuple(sorted(grades.items())),
        relevant / len(qrels) if qrels else 0.0,
        gaps,
    )
