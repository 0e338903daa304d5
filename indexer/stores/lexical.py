"""The lexical store: a Whoosh index of stems, scored by BM25F. The only importer of whoosh.

Texts and queries go through the same analysis; a query is free text, literal and OR-ed: no character is an operator.
Whoosh keeps pickles in its files; they are read through an unpickler that refuses every class but Whoosh's own
bookkeeping (`_ALLOWED`), so that opening somebody else's index runs no code.
"""

import io
import pickle
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import whoosh.codec.whoosh3
import whoosh.filedb.fileindex
import whoosh.filedb.structfile
import whoosh.index
from numpy.typing import NDArray
from whoosh.analysis import IDTokenizer
from whoosh.analysis.filters import STOP_WORDS
from whoosh.fields import TEXT, Schema
from whoosh.lang.porter import stem as porter_stem
from whoosh.query import Or, Term
from whoosh.scoring import BM25F

from indexer.errors import DamagedIndexError

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

K1 = 1.2
B = 0.75


def _encode_latin1(text: str, encoding: str) -> bytes:
    # How pickle protocol 2 spells bytes; any other encoding would be somebody's own idea.
    if encoding != "latin1":
        message = f"refused to encode as {encoding}"
        raise pickle.UnpicklingError(message)
    return text.encode("latin-1")


class _RefusingUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return _encode_latin1
        message = f"refused to load {module}.{name}"
        raise pickle.UnpicklingError(message)


def _loads(data: bytes, **_: object) -> Any:
    return _RefusingUnpickler(io.BytesIO(data)).load()


def _load(stream: Any, **_: object) -> Any:
    return _RefusingUnpickler(stream).load()


# Whoosh offers no hook, so its modules are handed our reading functions in place of pickle's.
whoosh.codec.whoosh3.loads = _loads
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


def _schema() -> Schema:
    return Schema(**{_FIELD: TEXT(analyzer=IDTokenizer(), phrase=False, spelling=False)})


def build(texts: Iterable[str], folder: Path, *, memory_megabytes: int = 256) -> int:
    """Index the texts, whose numbers are their places, into an existing empty folder; return how many."""
    index = whoosh.index.create_in(str(folder), _schema())
    writer = index.writer(limitmb=memory_megabytes)
    count = 0
    for text in texts:
        # A list goes past Whoosh's analyser: analysing here costs a third of its token objects.
        writer.add_document(**{_FIELD: analyse(text)})
        count += 1
    writer.commit(optimize=True)
    index.close()
    return count


@dataclass(frozen=True, slots=True)
class LexicalStore:
    """A finished Whoosh index."""

    searcher: Any
    size: int

    @classmethod
    def open(cls, folder: Path, *, k1: float = K1, b: float = B) -> "LexicalStore":
        """Open the index in a folder.

        Raises
        ------
        DamagedIndexError
            If Whoosh cannot read it, or it asks for a class that a Whoosh index does not need.
        """
        try:
            index = whoosh.index.open_dir(str(folder), readonly=True, schema=_schema())
            searcher = index.searcher(weighting=BM25F(B=b, K1=k1))
            return cls(searcher, int(searcher.doc_count_all()))
        except Exception as error:
            # Whoosh reports damage by whatever its parsing happens to raise.
            message = (
                f"the lexical index {folder.name}/ is damaged ({type(error).__name__}: {error}); run: twindex check"
            )
            raise DamagedIndexError(message) from error

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
        chosen = None if allowed is None else {int(number) for number in allowed}
        limit = k + 16
        while True:
            try:
                found = self.searcher.search(query, limit=limit, filter=chosen).top_n
            except Exception as error:
                message = f"the lexical index is damaged ({type(error).__name__}: {error}); run: twindex check"
                raise DamagedIndexError(message) from error
            # Scores are compared as 32-bit floats, as trec_eval does: what differs beyond them is a tie.
            scored = [ScoredNumber(int(number), float(np.float32(score))) for score, number in found]
            if len(found) < limit or scored[-1].score < scored[k - 1].score:
                return scored
            limit *= 4

    def explain(self, text: str, document: int) -> list[TermScore]:
        """Return what each term of a query adds to a document's score; the parts sum to the score."""
        reader = self.searcher.reader()
        length, average = reader.doc_field_length(document, _FIELD), self.searcher.avg_field_length(_FIELD)
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
            found_in = int(reader.doc_frequency(_FIELD, term))
            idf = float(self.searcher.idf(_FIELD, term))
            parts.append(TermScore(term, count, frequency, found_in, idf, length, average, score))
        return parts

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return in how many documents each analysed term occurs."""
        return [int(self.searcher.reader().doc_frequency(_FIELD, term)) for term in terms]
