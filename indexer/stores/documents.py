"""The document store: documents, passages and the distinct texts that are encoded. The only importer of sqlite3.

A *row* is the number of a distinct passage text, from 0: the same row in every vector store of the index.
Equal texts share a row, so they are encoded once and always score alike.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Passage
from corpora.errors import DuplicateIdError
from indexer.errors import DamagedIndexError, FormatVersionError, other_format

_SCHEMA = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    metadata TEXT NOT NULL, source TEXT NOT NULL);
CREATE TABLE texts (
    row INTEGER PRIMARY KEY, digest BLOB NOT NULL, text TEXT,
    document INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL);
CREATE TABLE counts (documents INTEGER NOT NULL, passages INTEGER NOT NULL, texts INTEGER NOT NULL);
CREATE TABLE passages (
    document INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    row INTEGER NOT NULL, PRIMARY KEY (document, number)) WITHOUT ROWID;
"""
#: Kept as SQLite's user_version; the first databases of this format have 0 there.
_FORMAT = 1
_BATCH = 2000
_CHUNK = 65_536


class Located(NamedTuple):
    """Where a row occurs: a document's number and id, and the passage's number in it."""

    row: int
    document: int
    doc_id: str
    passage: int


class StoredDocument(NamedTuple):
    """A document as it is shown, with the character span of one of its passages."""

    document: Document
    start: int
    stop: int

    @property
    def passage(self) -> str:
        """The passage's text."""
        return self.document.searchable_text[self.start : self.stop]


def text_digest(text: str) -> bytes:
    """Return the 16-byte digest by which equal texts are known."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class DocumentWriter:
    """Stages a collection in a new database; `close` makes it durable."""

    def __init__(self, path: Path) -> None:
        """Create the database at a path that must not exist."""
        self._path = path
        with _writing(path):
            self._connection = sqlite3.connect(path)
        # The file is staged aside and thrown away after a crash: durability comes from the fsync on publishing.
        self._connection.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
            f"PRAGMA user_version={_FORMAT};" + _SCHEMA
        )
        # About 150 bytes a distinct text: 150 MB for a million, the one thing here that grows with the collection.
        self._rows: dict[bytes, int] = {}
        self._documents = 0
        self._passages = 0
        self._texts = 0

    def add(self, documents: Sequence[tuple[Document, Sequence[Passage]]]) -> None:
        """Add documents with their passages."""
        records, passages, texts = [], [], []
        for document, windows in documents:
            number = self._documents
            self._documents += 1
            metadata = "{}"
            if document.metadata:
                metadata = json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True)
            records.append((number, document.doc_id, document.title, document.text, metadata, document.source))
            whole = document.searchable_text
            for window in windows:
                digest = text_digest(window.text)
                row = self._rows.get(digest)
                if row is None:
                    row = self._rows[digest] = len(self._rows)
                    # A text is kept apart only where it is not simply a slice of its document.
                    own = None if window.text == whole[window.start : window.end] else window.text
                    texts.append((row, digest, own, number, window.start, window.end))
                passages.append((number, window.number, window.start, window.end, row))
        with _writing(self._path):
            self._connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", records)
            self._connection.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)", texts)
            self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", passages)
        self._texts += len(texts)
        self._passages += len(passages)

    def close(self) -> None:
        """Finish the database.

        Raises
        ------
        DuplicateIdError
            If an id occurs twice.
        """
        with _writing(self._path), closing(self._connection) as connection:
            connection.execute("INSERT INTO counts VALUES (?, ?, ?)", (self._documents, self._passages, self._texts))
            connection.execute("CREATE INDEX passages_by_row ON passages (row)")
            try:
                # Built at the end: ids sorted once cost less than a million insertions.
                connection.execute("CREATE UNIQUE INDEX documents_by_id ON documents (doc_id)")
            except sqlite3.IntegrityError as error:
                sql = "SELECT doc_id FROM documents GROUP BY doc_id HAVING count(*) > 1 LIMIT 1"
                doc_id = connection.execute(sql).fetchone()[0]
                message = f"the id {doc_id!r} occurs twice in the collection; ids must differ (--duplicates first|last)"
                raise DuplicateIdError(message) from error
            connection.commit()

    def abandon(self) -> None:
        """Close the database without finishing it."""
        self._connection.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Report what keeps SQLite from writing (a full disk mostly) as the operating system's error that it is."""
    try:
        yield
    except sqlite3.Error as error:
        message = f"{path} cannot be written ({error})"
        raise OSError(message) from error


class DocumentStore:
    """Reads a finished database; never writes to it."""

    def __init__(self, path: Path) -> None:
        """Open a database read-only.

        Raises
        ------
        DamagedIndexError
            If there is no readable database.
        FormatVersionError
            If another version of this format wrote it.
        """
        self._path = path
        try:
            # immutable: a published generation never changes, so no lock is taken and no journal looked for.
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version not in {0, _FORMAT}:
                self._connection.close()
                raise other_format(path.name, version, _FORMAT)
            counts = self._connection.execute("SELECT documents, passages, texts FROM counts").fetchone()
            self.documents, self.passages, self.texts = (int(count) for count in counts)
        except FormatVersionError:
            raise
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DamagedIndexError:
        state = "is damaged" if self._path.exists() else "is missing"
        return DamagedIndexError(f"{self._path.name} {state} ({error}); run: twindex check, then index again")

    def _query(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
        try:
            yield from self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def iter_texts(self, rows: NDArray[np.int64] | None = None) -> Iterator[str]:
        """Yield the distinct passage texts in order of row; only the given ascending rows where there are some."""
        wanted = np.arange(self.texts, dtype=np.int64) if rows is None else rows
        for start in range(0, len(wanted), _BATCH):
            chunk = wanted[start : start + _BATCH].tolist()
            together = chunk[-1] - chunk[0] < 4 * len(chunk)
            where = "BETWEEN ? AND ?" if together else f"IN ({','.join('?' * len(chunk))})"
            sql = f"""
                SELECT t.row, t.text, d.title, d.text, t.start, t.stop FROM texts t
                JOIN documents d ON d.number = t.document WHERE t.row {where} ORDER BY t.row"""
            asked = set(chunk)
            for row, own, title, text, first, stop in self._query(sql, (chunk[0], chunk[-1]) if together else chunk):
                if row in asked:
                    whole = Document("", str(text), str(title)).searchable_text
                    yield str(own) if own is not None else whole[int(str(first)) : int(str(stop))]

    def digests(self) -> NDArray[np.void]:
        """Return the (texts,) 16-byte digests in order of row."""
        digests = np.zeros(self.texts, dtype="V16")
        for start in range(0, self.texts, _CHUNK):
            sql = "SELECT digest FROM texts WHERE row BETWEEN ? AND ? ORDER BY row"
            joined = b"".join(digest for (digest,) in self._query(sql, (start, start + _CHUNK - 1)))  # type: ignore[misc]
            digests[start : start + _CHUNK] = np.frombuffer(joined, dtype="V16")
        return digests

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the database: its own structure, and how its tables fit together."""
        for (line,) in self._query("PRAGMA quick_check(5)"):
            if line != "ok":
                yield f"SQLite finds: {line}"
        counted = {
            "documents without a passage": "SELECT count(*) FROM documents WHERE number NOT IN"
            " (SELECT document FROM passages)",
            "passages without a document": "SELECT count(*) FROM passages WHERE document NOT IN"
            " (SELECT number FROM documents)",
            "passages without a text": "SELECT count(*) FROM passages WHERE row NOT IN (SELECT row FROM texts)",
        }
        for what, sql in counted.items():
            (count,) = next(self._query(sql))
            if count:
                yield f"{count} {what}"
        (rows,) = next(self._query("SELECT coalesce(max(row) + 1, 0) FROM texts"))
        if rows != self.texts:
            yield f"rows up to {rows} for {self.texts} texts"

    def carried_from(self, earlier: Path) -> NDArray[np.int64]:
        """Return the number here of each document of an earlier database, -1 where it is gone or has another text.

        Raises
        ------
        DamagedIndexError
            If the earlier database cannot be read.
        """
        uri = f"{earlier.absolute().as_uri()}?mode=ro&immutable=1"
        next(self._query("ATTACH DATABASE ? AS earlier", (uri,)), None)
        try:
            count = next(self._query("SELECT documents FROM earlier.counts"))[0]
            numbers = np.full(int(str(count)), -1, np.int64)
            sql = """SELECT e.number, d.number FROM earlier.documents e JOIN main.documents d ON d.doc_id = e.doc_id
                WHERE d.title = e.title AND d.text = e.text"""
            pairs = np.array(list(self._query(sql)), np.int64).reshape(-1, 2)
            numbers[pairs[:, 0]] = pairs[:, 1]
        finally:
            self._connection.execute("DETACH DATABASE earlier")
        return numbers

    def iter_cuts(self, doc_ids: Sequence[str]) -> Iterator[tuple[str, str, list[Passage]]]:
        """Yield (title, text, passages) of those of the given documents that there are; passages carry the id."""
        marks = ",".join("?" * len(doc_ids))
        sql = f"""SELECT d.doc_id, d.title, d.text, p.number, p.start, p.stop, t.text, t.digest FROM documents d
            JOIN passages p ON p.document = d.number JOIN texts t ON t.row = p.row
            WHERE d.doc_id IN ({marks}) ORDER BY d.number, p.number"""
        found: dict[tuple[str, str, str], list[Passage]] = {}
        lost: set[tuple[str, str, str]] = set()
        for doc_id, title, text, number, start, stop, own, digest in self._query(sql, doc_ids):
            key = (str(doc_id), str(title), str(text))
            first, last = int(str(start)), int(str(stop))
            passage = str(own) if own is not None else Document("", key[2], key[1]).searchable_text[first:last]
            # A row that a title-prefixed passage shares with another document's slice has that one's text.
            if text_digest(passage) != digest:
                lost.add(key)
            found.setdefault(key, []).append(Passage(key[0], int(str(number)), first, last, passage))
        for key, passages in found.items():
            if key not in lost:
                yield key[1], key[2], passages

    def searchable_texts(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield (number, searchable text) of the given documents, in order of number."""
        for chunk in _chunks(sorted(numbers)):
            marks = ",".join("?" * len(chunk))
            sql = f"SELECT number, title, text FROM documents WHERE number IN ({marks}) ORDER BY number"
            for number, title, text in self._query(sql, chunk):
                yield int(str(number)), Document("", str(text), str(title)).searchable_text

    def iter_documents(self) -> Iterator[Document]:
        """Yield all documents in the order they were read."""
        for row in self._query("SELECT doc_id, title, text, metadata, source FROM documents ORDER BY number"):
            yield _document(row)

    def iter_searchable(self) -> Iterator[str]:
        """Yield each document's searchable text in the order they were read."""
        for title, text in self._query("SELECT title, text FROM documents ORDER BY number"):
            yield Document("", str(text), str(title)).searchable_text

    def locate(self, rows: Iterable[int]) -> list[Located]:
        """Return every place where the given rows occur."""
        found: list[Located] = []
        for chunk in _chunks([int(row) for row in rows]):
            marks = ",".join("?" * len(chunk))
            sql = f"""SELECT p.row, p.document, d.doc_id, p.number FROM passages p
                JOIN documents d ON d.number = p.document WHERE p.row IN ({marks})"""
            found += [Located(*row) for row in self._query(sql, chunk)]  # type: ignore[arg-type]
        return found

    def doc_ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the ids of documents by number."""
        ids: dict[int, str] = {}
        for chunk in _chunks([int(number) for number in numbers]):
            marks = ",".join("?" * len(chunk))
            sql = f"SELECT number, doc_id FROM documents WHERE number IN ({marks})"
            ids.update(self._query(sql, chunk))  # type: ignore[arg-type]
        return ids

    def holds(self, doc_id: str) -> bool:
        """Return whether there is a document with this id."""
        return next(self._query("SELECT 1 FROM documents WHERE doc_id = ?", (doc_id,)), None) is not None

    def fetch(self, doc_id: str, passage: int = 0) -> StoredDocument | None:
        """Return a document and the span of one of its passages; None where there is no such id."""
        row = next(
            self._query(
                """SELECT d.doc_id, d.title, d.text, d.metadata, d.source, coalesce(p.start, 0), coalesce(p.stop, 0)
                FROM documents d LEFT JOIN passages p ON p.document = d.number AND p.number = ? WHERE d.doc_id = ?""",
                (passage, doc_id),
            ),
            None,
        )
        return None if row is None else StoredDocument(_document(row), int(row[5]), int(row[6]))  # type: ignore[call-overload]

    def select(self, conditions: Sequence[tuple[str, str]]) -> "Selection":
        """Return which documents carry all the given metadata values, compared as text."""
        where = " AND ".join(
            "EXISTS (SELECT 1 FROM json_each(metadata) WHERE key = ? AND CAST(value AS TEXT) = ?)" for _ in conditions
        )
        values = [part for condition in conditions for part in condition]
        chosen = f"SELECT number FROM documents WHERE {where}"
        numbers = self._integers(f"{chosen} ORDER BY number", values)
        rows = self._integers(f"SELECT DISTINCT row FROM passages WHERE document IN ({chosen}) ORDER BY row", values)
        return Selection(numbers, rows)

    def _integers(self, sql: str, values: Sequence[object]) -> NDArray[np.int64]:
        return np.fromiter((row[0] for row in self._query(sql, values)), dtype=np.int64)

    def select_ids(self, doc_ids: Sequence[str]) -> "Selection":
        """Return the documents with the given ids; unknown ids are left out."""
        numbers: list[int] = []
        for doc_id in doc_ids:
            numbers += [int(str(n)) for (n,) in self._query("SELECT number FROM documents WHERE doc_id = ?", (doc_id,))]
        rows = {
            int(str(row))
            for number in numbers
            for (row,) in self._query("SELECT row FROM passages WHERE document = ?", (number,))
        }
        return Selection(np.array(sorted(numbers), dtype=np.int64), np.array(sorted(rows), dtype=np.int64))

    def passage_text(self, doc_id: str, passage: int = 0) -> str:
        """Return what was encoded of a document's passage, a repeated title in front included."""
        sql = """SELECT p.row FROM passages p JOIN documents d ON d.number = p.document
            WHERE d.doc_id = ? AND p.number = ?"""
        found = next(self._query(sql, (doc_id, passage)), None)
        return "" if found is None else next(self.iter_texts(np.array([found[0]], dtype=np.int64)), "")

    def metadata_fields(self) -> list[str]:
        """Return the metadata field names that occur, in order of name."""
        return [
            str(key) for (key,) in self._query("SELECT DISTINCT key FROM documents, json_each(metadata) ORDER BY key")
        ]


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a filter lets through: their numbers, and the rows of their passages, ascending."""

    documents: NDArray[np.int64]
    rows: NDArray[np.int64]


def _document(row: tuple[object, ...]) -> Document:
    doc_id, title, text, metadata, source = (str(value) for value in row[:5])
    return Document(doc_id, text, title, json.loads(metadata), source)


def _chunks(values: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]
