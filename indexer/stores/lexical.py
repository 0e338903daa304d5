"""The lexical store: a Whoosh index of stems, scored by BM25F. The only importer of whoosh.

Texts and queries go through the same analysis; a query is free text, literal and OR-ed: no character is an operator.
Whoosh keeps pickles in its files; they are read through an unpickler that refuses every class but Whoosh's own
bookkeeping (`_ALLOWED`), so that opening somebody else's index runs no code.
"""

import json
import math
import pickle
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import whoosh.codec.whoosh3
import whoosh.columns
import whoosh.filedb.fileindex
import whoosh.filedb.structfile
import whoosh.formats
import whoosh.index
from numpy.typing import NDArray
from whoosh.analysis import IDTokenizer
from whoosh.analysis.filters import STOP_WORDS
from whoosh.fields import TEXT, Schema
from whoosh.lang.porter import stem as porter_stem
from whoosh.query import Or, Term
from whoosh.scoring import BM25F
from whoosh.searching import Searcher
from whoosh.system import pack_uint

from indexer.arrays import read_array
from indexer.errors import DamagedIndexError, other_format
from indexer.layout import inside
from indexer.stores.restricted_pickle import restricted_loaders

_FIELD = "content"
_WORD = re.compile(r"\w+(?:[.'’]\w+)*")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")
# Whoosh writes its tables at pickle protocols 2 and up, hence both names of the built-in module.
_ALLOWED = {
    ("whoosh.codec.whoosh3", "W3Segment"),
    ("whoosh.codec.whoosh3", "W3Codec"),
    ("collections", "defaultdict"),
    *((module, name) for module in ("builtins", "__builtin__") for name in ("int", "set")),
}

_TOC_VERSION = whoosh.index._CURRENT_TOC_VERSION  # noqa: SLF001 - there is no public name for it
K1 = 1.2
B = 0.75


_loads, _load = restricted_loaders(_ALLOWED)

# Whoosh offers no hook, so its modules are handed our reading functions in place of pickle's.
whoosh.codec.whoosh3.loads = whoosh.columns.loads = whoosh.formats.loads = _loads
whoosh.filedb.structfile.load = _load
for _module in (whoosh.index, whoosh.filedb.fileindex):
    _module.pickle = SimpleNamespace(loads=_loads, load=_load, dumps=pickle.dumps, PicklingError=pickle.PicklingError)
whoosh.index.toc_loaders.clear()  # readers of formats before Whoosh 3, with an unpickler of their own


class ScoredNumber(NamedTuple):
    """A document's number and its BM25F score."""

    document: int
    score: float


class TermScore(NamedTuple):
    """What one query term adds to a document's score, and from what."""

    term: str
    query_frequency: int
    frequency: int
    document_frequency: int
    idf: float
    length: int
    average_length: float
    score: float


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(porter_stem(word)) if word.isascii() else word


@lru_cache(maxsize=200_000)
def _terms_of(word: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKD", word.casefold())
    folded = "".join(character for character in folded if not unicodedata.combining(character)).replace("’", "'")
    if _IDEOGRAPHS.search(folded):
        # Scripts without spaces: single characters and pairs, so that a part of a run is found.
        return (*folded, *(folded[i : i + 2] for i in range(len(folded) - 1)))
    return (_stem(folded.removesuffix("'s")),)


def analyse(text: str) -> list[str]:
    """Return the terms of a text: words without case and accents, English ones stemmed (Porter 1980)."""
    return [term for word in _WORD.findall(text) for term in _terms_of(word)]


_STOP_STEMS = frozenset(term for word in STOP_WORDS for term in analyse(word))


def query_terms(text: str) -> Counter[str]:
    """Return a query's terms with their counts; function words only where there is nothing else."""
    terms = Counter(analyse(text))
    telling = Counter({term: count for term, count in terms.items() if term not in _STOP_STEMS})
    return telling or terms


class _Terms(TEXT):  # type: ignore[misc]
    """A field that is handed its terms: counting them here costs a third of what Whoosh's token objects do."""

    def index(self, value: Sequence[str], **_: object) -> Iterator[tuple[bytes, int, float, bytes]]:
        for term, count in Counter(value).items():
            yield term.encode("utf-8", "surrogatepass"), count, float(count), pack_uint(count)


def _schema() -> Schema:
    return Schema(**{_FIELD: _Terms(analyzer=IDTokenizer(), phrase=False, spelling=False)})


def build(texts: Iterable[str], folder: Path, *, memory_megabytes: int = 256) -> int:
    """Index the texts, whose numbers are their places, into an existing empty folder; return how many."""
    index = whoosh.index.create_in(str(folder), _schema())
    writer = index.writer(limitmb=memory_megabytes)
    count = 0
    for text in texts:
        writer.add_document(**{_FIELD: analyse(text)})
        count += 1
    writer.commit(optimize=True)
    _close(index, folder)
    return count


def _close(index: Any, folder: Path) -> None:
    index.close()
    (folder / "MAIN_WRITELOCK").unlink(missing_ok=True)  # nobody writes to it again


# Updates. Whoosh's files never change once written, so an updated index shares them with the one before and adds a
# segment of its own. What Whoosh counts of deleted documents until their segments are merged is kept beside it and
# taken off, so that every score is that of an index built anew.

_NUMBERS = "numbers.npy"
_REMOVED = "removed.json"
_OWN = {_NUMBERS, _REMOVED}
#: An index is built anew when more than this share of what its segments hold is new or gone, or there are more
#: segments than this: each one costs a query a dictionary look-up a term.
_MOST_CHANGED = 0.1
_MOST_SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class Removed:
    """What the segments still count of documents that are gone: how many, their terms, and in how many each occurs."""

    documents: int = 0
    length: int = 0
    frequencies: Mapping[str, int] = field(default_factory=dict)
    base: int = 0  # documents when the index was last built anew
    segments: int = 1


def held_numbers(folder: Path) -> NDArray[np.int64] | None:
    """Return the document number of each of Whoosh's documents, -1 where it is gone; None where they are the same."""
    path = folder / _NUMBERS
    return read_array(path) if path.exists() else None


def _removed(folder: Path) -> Removed:
    path = folder / _REMOVED
    return Removed(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Removed()


def can_update(folder: Path, numbers: NDArray[np.int64], added: int) -> bool:
    """Return whether few enough documents have changed for a segment more to be worth it."""
    before = _removed(folder)
    base = before.base or len(numbers)
    changed = int((numbers < 0).sum()) + added + max(0, len(numbers) - base)
    return changed <= _MOST_CHANGED * base and before.segments < _MOST_SEGMENTS


def update(
    previous: Path,
    folder: Path,
    numbers: NDArray[np.int64],
    *,
    removed: Iterable[str],
    added: Iterable[tuple[int, str]],
) -> None:
    """Make an index in an empty folder from a previous one, which stays as it is.

    Parameters
    ----------
    numbers
        (w,) new number of each of Whoosh's documents, -1 where it goes or has gone.
    removed
        Texts of the documents that go now.
    added
        (number, text) of the documents that are new.

    Raises
    ------
    DamagedIndexError, FormatVersionError
        If the previous index cannot be read.
    """
    for path in previous.iterdir():
        if path.name not in _OWN and path.suffix in {".toc", ".seg"}:
            try:
                (folder / path.name).hardlink_to(path)
            except OSError:
                shutil.copyfile(path, folder / path.name)
    with _reading(previous.name):
        held, before = held_numbers(previous), _removed(previous)
    here = np.arange(len(numbers)) if held is None else held
    frequencies, length = Counter(before.frequencies), before.length
    for text in removed:
        terms = analyse(text)
        frequencies.update(set(terms))
        length += len(terms)
    with _reading(previous.name):
        index = whoosh.index.open_dir(str(folder), schema=_schema())
    writer = index.writer(limitmb=64)
    for number in np.flatnonzero((numbers < 0) & (here >= 0)).tolist():
        writer.delete_document(number)
    new = []
    for number, text in added:
        writer.add_document(**{_FIELD: analyse(text)})
        new.append(number)
    writer.commit(merge=False)
    _close(index, folder)
    np.save(folder / _NUMBERS, np.concatenate([numbers, np.array(new, np.int64)]), allow_pickle=False)
    gone = int((numbers < 0).sum())
    state = Removed(gone, length, dict(frequencies), before.base or len(numbers), before.segments + 1)
    (folder / _REMOVED).write_text(json.dumps(asdict(state), sort_keys=True), encoding="utf-8")


class _LiveBM25F(BM25F):  # type: ignore[misc]
    """BM25F with the statistics of the documents that are there, those that are gone not counted."""

    def __init__(self, removed: Removed, **parameters: float) -> None:
        super().__init__(**parameters)
        self.removed = removed

    def idf(self, searcher: Any, fieldname: str, text: bytes | str) -> float:
        """Return Whoosh's idf, ln(N / (n + 1)) + 1."""
        parent = searcher.get_parent()
        term = text.decode() if isinstance(text, bytes) else text
        found_in = parent.doc_frequency(fieldname, text) - self.removed.frequencies.get(term, 0)
        return math.log((parent.doc_count_all() - self.removed.documents) / (found_in + 1)) + 1


class _LiveSearcher(Searcher):  # type: ignore[misc]
    def avg_field_length(self, fieldname: str, default: float | None = None) -> float | None:
        """Return the mean length of the documents that are there."""
        removed = self.weighting.removed
        live = self.doc_count_all() - removed.documents
        return float((self.field_length(fieldname) - removed.length) / (live or 1))


@contextmanager
def _reading(name: str = "lexical") -> Iterator[None]:
    """Report damage as such: Whoosh does so by whatever its parsing happens to raise."""
    try:
        yield
    except whoosh.index.IndexVersionError as error:
        raise other_format(f"the lexical index {name}/", error.version, _TOC_VERSION) from error
    except Exception as error:
        message = f"the lexical index {name}/ is damaged ({type(error).__name__}: {error}); run: twindex check"
        raise DamagedIndexError(message) from error


@dataclass(frozen=True, slots=True)
class LexicalStore:
    """A finished Whoosh index of `size` documents; `numbers` gives the number of each of Whoosh's documents."""

    searcher: Any
    size: int
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def open(cls, folder: Path, *, k1: float = K1, b: float = B) -> "LexicalStore":
        """Open the index in a folder.

        Raises
        ------
        DamagedIndexError
            If Whoosh cannot read it, or it asks for a class that a Whoosh index does not need.
        FormatVersionError
            If another format of Whoosh wrote it.
        """
        with _reading(folder.name):
            index = whoosh.index.open_dir(str(folder), readonly=True, schema=_schema())
            for segment in index._segments():  # noqa: SLF001 - names that Whoosh opens unseen
                inside(folder, segment.make_filename(".seg"))
            removed = _removed(folder)
            weighting = _LiveBM25F(removed, B=b, K1=k1)
            searcher = _LiveSearcher(index.reader(), fromindex=index, weighting=weighting)
            return cls(searcher, int(searcher.doc_count_all()) - removed.documents, held_numbers(folder))

    @property
    def largest(self) -> int:
        """The largest document number; -1 where there is no document."""
        return self.size - 1 if self.numbers is None else int(self.numbers.max(initial=-1))

    def search(self, text: str, k: int, *, allowed: NDArray[np.int64] | None = None) -> list[ScoredNumber]:
        """Return at least the k best documents, and all that tie with the k-th, by descending score.

        Parameters
        ----------
        allowed
            Ascending document numbers to choose from; all where None.
        """
        terms = query_terms(text)
        if not terms or not self.size or k <= 0 or (allowed is not None and not len(allowed)):
            return []
        query = Or([Term(_FIELD, term, boost=float(count)) for term, count in terms.items()])
        chosen = None
        if allowed is not None:
            here = allowed if self.numbers is None else np.flatnonzero(np.isin(self.numbers, allowed))
            chosen = set(here.tolist())
        limit = k + 16
        while True:
            with _reading():
                found = self.searcher.search(query, limit=limit, filter=chosen).top_n
            # Scores are compared as 32-bit floats, as trec_eval does: what differs beyond them is a tie.
            scored = [ScoredNumber(self._number(place), float(np.float32(score))) for score, place in found]
            if len(found) < limit or scored[-1].score < scored[k - 1].score:
                return scored
            limit *= 4

    def _number(self, place: int) -> int:
        return int(place) if self.numbers is None else int(self.numbers[place])

    def explain(self, text: str, document: int) -> list[TermScore]:
        """Return what each term of a query adds to a document's score; the parts sum to the score."""
        with _reading():
            return self._explain(text, document)

    def _explain(self, text: str, document: int) -> list[TermScore]:
        reader = self.searcher.reader()
        if self.numbers is not None:
            document = int(np.flatnonzero(self.numbers == document)[0])
        # A document without any term has no length in Whoosh.
        length = reader.doc_field_length(document, _FIELD) or 0
        average = self.searcher.avg_field_length(_FIELD)
        parts = []
        for term, count in query_terms(text).items():
            if (_FIELD, term) not in reader:
                parts.append(TermScore(term, count, 0, 0, 0.0, length, average, 0.0))
                continue
            matcher = Term(_FIELD, term, boost=float(count)).matcher(self.searcher)
            matcher.skip_to(document)
            here = matcher.is_active() and matcher.id() == document
            frequency = int(matcher.weight() / count) if here else 0
            score = float(matcher.score()) if here else 0.0
            found_in = self.document_frequencies([term])[0]
            idf = float(self.searcher.idf(_FIELD, term))
            parts.append(TermScore(term, count, frequency, found_in, idf, length, average, score))
        return parts

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return in how many documents each analysed term occurs."""
        gone = self.searcher.weighting.removed.frequencies
        with _reading():
            return [int(self.searcher.reader().doc_frequency(_FIELD, term)) - gone.get(term, 0) for term in terms]
