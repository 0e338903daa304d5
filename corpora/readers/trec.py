"""TREC collections: `<DOC>` files, topics, qrels.

The markup is SGML without its grammar: elements are told by a list of names, everything else that looks like
a tag is dropped.
"""

import html
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import unique
from corpora.errors import CorpusError, JudgementError, UnreadableFileError
from corpora.judgements import Qrels, Query
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.lines import read_head, read_lines
from corpora.readers.qrels import read_qrels

_TITLE_TAGS = {"title", "headline", "hl", "ti", "head"}
_TEXT_TAGS = {"text"}
_DROPPED_TAGS = {"dochdr", "docid", "docoldno", "filename", "url"}
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})(?:\s[^<>]{0,300})?/?>")
_SPACES = re.compile(r"[ \t\r\f\v]+")
_TOPIC_PARTS = {"num": "Number:", "title": "Topic:", "desc": "Description:", "narr": "Narrative:"}

#: Files looked into before a folder is taken for something else.
_FILES_LOOKED_INTO = 20


def read_trec(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream the `<DOC>` elements of a file.

    Title: the elements TITLE, HEADLINE, HL, TI, HEAD, or that named as `title_field`. Text: TEXT, or those
    named as `text_fields`; everything else that is read where a document has none of these.

    Raises
    ------
    UnreadableFileError
        If the file holds no `<DOC>`.
    """
    record: list[str] | None = None
    size = start = found = 0
    for number, line in read_lines(path, options, log):
        opened = line.lstrip()[:5].upper() == "<DOC>"
        if opened:
            if record is not None:
                log.skip("document without </DOC>", f"{path}:{start}")
            record, size, start = [], 0, number
            found += 1
        if record is None:
            continue
        size += len(line)
        if size > options.limits.record_bytes:
            log.skip(f"document longer than {options.limits.record_bytes:,} characters", f"{path}:{start}")
            record = None
            continue
        record.append(line)
        if "</DOC>" in line.upper():
            document = _document("".join(record), options, f"{path}:{start}", log)
            record = None
            if document is not None:
                yield document
    if record is not None:
        log.skip("document without </DOC>", f"{path}:{start}")
    if not found:
        message = f"{path}: no <DOC> in it; expected a TREC file of documents"
        raise UnreadableFileError(message)


def _document(source: str, options: ReadOptions, where: str, log: ReadLog) -> Document | None:
    titles = {options.title_field.lower()} if options.title_field else _TITLE_TAGS
    texts = {name.lower() for name in options.text_fields} or _TEXT_TAGS
    id_tag = (options.id_field or "docno").lower()
    parts = _elements(source, {id_tag, *titles, *texts, *_DROPPED_TAGS})
    doc_id = " ".join("".join(parts.get(id_tag, [])).split())
    if not doc_id:
        log.skip("document without an id", where, f"no <{id_tag.upper()}>")
        return None
    title = _plain(" ".join(text for tag in titles for text in parts.get(tag, [])))
    text = _plain("\n".join(text for tag in texts for text in parts.get(tag, [])) or "\n".join(parts[""]))
    return Document(doc_id, text, " ".join(title.split()), source=where)


def _elements(source: str, names: set[str]) -> dict[str, list[str]]:
    """Return the text inside each named element, and under "" what is inside none.

    One pass: named elements do not nest, other tags are blanks.
    """
    parts: dict[str, list[str]] = {"": []}
    inside = ""
    pieces: list[str] = []
    last = 0
    for tag in _TAG.finditer(source):
        pieces.append(source[last : tag.start()])
        last = tag.end()
        name = tag[2].lower()
        closes = bool(tag[1]) and name == inside
        opens = not tag[1] and not inside and name in names
        if closes or opens:
            parts.setdefault(inside, []).append(" ".join(pieces))
            pieces = []
            inside = name if opens else ""
    pieces.append(source[last:])
    parts.setdefault(inside, []).append(" ".join(pieces))
    return parts


def _plain(text: str) -> str:
    lines = (_SPACES.sub(" ", line).strip() for line in html.unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def read_topics(path: Path, options: ReadOptions, log: ReadLog) -> Mapping[str, Query]:
    """Read topics: `<top>` elements (the title asks, the rest is metadata), or lines of `id<tab>text`.

    Raises
    ------
    JudgementError
        If a line is neither, or two topics carry one id.
    """
    queries: dict[str, Query] = {}
    lines = list(read_lines(path, options, log))
    found = _top_elements(lines) if any("<top>" in line.lower() for _, line in lines) else _tabbed(path, lines)
    for number, query in found:
        if query.query_id in queries or not query.query_id:
            problem = "an id used before" if query.query_id else "no id"
            message = f"{path}:{number}: a topic with {problem} ({query.query_id!r})"
            raise JudgementError(message)
        queries[query.query_id] = query
    return queries


def _top_elements(lines: list[tuple[int, str]]) -> Iterator[tuple[int, Query]]:
    parts: dict[str, list[str]] | None = None
    current = ""
    start = 0
    for number, line in lines:
        rest = line
        while rest:
            tag = _TAG.search(rest)
            before = rest[: tag.start()] if tag else rest
            if parts is not None and current:
                parts[current].append(before)
            if tag is None:
                break
            rest = rest[tag.end() :]
            name = tag[2].lower()
            if name == "top":
                if parts is not None:
                    yield start, _topic(parts)
                parts, start = (None, 0) if tag[1] else ({part: [] for part in _TOPIC_PARTS}, number)
            current = name if name in _TOPIC_PARTS and not tag[1] else ""
    if parts is not None:
        yield start, _topic(parts)


def _topic(parts: Mapping[str, list[str]]) -> Query:
    texts = {
        name: " ".join(html.unescape(" ".join(parts[name])).split()).removeprefix(label).strip()
        for name, label in _TOPIC_PARTS.items()
    }
    metadata = {name: texts[name] for name in ("desc", "narr") if texts[name]}
    return Query(texts["num"], texts["title"] or texts["desc"], metadata)


def _tabbed(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, Query]]:
    for number, line in lines:
        if not line.strip():
            continue
        query_id, tab, text = line.rstrip("\r\n").partition("\t")
        if not tab:
            message = f"{path}:{number}: found {line.strip()[:60]!r}; expected <top> elements or `id<tab>text`"
            raise JudgementError(message)
        yield number, Query(query_id.strip(), text.strip())


def is_trec(folder: Path, options: ReadOptions) -> bool:
    """Return whether a folder holds TREC documents, looking into its first files."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()][:_FILES_LOOKED_INTO]
    return any(_holds_documents(path, options) for path in files)


def _holds_documents(path: Path, options: ReadOptions) -> bool:
    try:
        return read_head(path, options.limits).lstrip()[:5].upper() == b"<DOC>"
    except (OSError, CorpusError):
        return False


def open_trec(folder: Path, options: ReadOptions, log: ReadLog) -> Collection:
    """Open a folder of TREC files: documents, and those whose names say topics (or queries) and qrels.

    Raises
    ------
    JudgementError
        If topics or judgements cannot be read.
    """
    noticed = ReadLog(strict=log.strict)
    documents: list[Path] = []
    queries: dict[str, Query] = {}
    qrels: dict[str, Qrels] = {}
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    for path in files:
        name = path.name.lower()
        if "qrel" in name:
            split = re.sub(r"qrels?|\.(txt|tsv|gz|trec)|^[._-]+|[._-]+$", "", name).strip("._-")
            qrels[split or "test"] = read_qrels(path, options, noticed)
        elif "topic" in name or "quer" in name:
            queries.update(read_topics(path, options, noticed))
        elif _holds_documents(path, options):
            documents.append(path)
        else:
            noticed.pass_over("file that does not begin with <DOC>", str(path))
    notes = tuple(line for line in noticed.summary().lines() if not line.startswith("read "))
    read = partial(_read_files, tuple(documents), options)
    return Collection(folder.resolve().name, str(folder), read, queries, qrels, notes=notes)


def _read_files(files: tuple[Path, ...], options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    log.files = len(files)

    def read(log: ReadLog) -> Iterator[Document]:
        for path in files:
            yield from read_trec(path, options, log)

    return unique(read, options.duplicates, log)
