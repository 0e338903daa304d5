"""Queries and judgements inside an index: `queries.jsonl` and `qrels/<split>.tsv`, as BEIR writes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corpora.collection import Collection
from corpora.judgements import Qrels, Query
from indexer.errors import DamagedIndexError


@dataclass(frozen=True, slots=True)
class Judgements:
    """The queries of a collection and its qrels by split."""

    queries: Mapping[str, Query]
    qrels: Mapping[str, Qrels]

    def find(self, text: str) -> Query | None:
        """Return the first query with exactly this text (white space and case apart), None where there is none."""
        wanted = " ".join(text.split()).casefold()
        return next((q for q in self.queries.values() if " ".join(q.text.split()).casefold() == wanted), None)

    def grades(self, query_id: str) -> Mapping[str, int]:
        """Return a query's grades by document, from whichever split judges it."""
        return next((split[query_id] for split in self.qrels.values() if query_id in split), {})


def save(collection: Collection, folder: Path) -> None:
    """Write a collection's judgements into a new folder; nothing where it has none."""
    if not collection.queries:
        return
    (folder / "qrels").mkdir(parents=True)
    with (folder / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as handle:
        for query in collection.queries.values():
            record = {"_id": query.query_id, "text": query.text, "metadata": dict(query.metadata)}
            handle.write(json.dumps(record, ensure_ascii=False) + "\n")
    for split, qrels in collection.qrels.items():
        with (folder / "qrels" / f"{split}.tsv").open("w", encoding="utf-8", newline="\n") as handle:
            handle.write("query-id\tcorpus-id\tscore\n")
            for query_id, grades in qrels.items():
                for doc_id, grade in grades.items():
                    handle.write(f"{_field(query_id)}\t{_field(doc_id)}\t{grade}\n")


def _field(value: str) -> str:
    # An id may hold a tab or a line break, or look like a quoted one: then it is written as JSON.
    return json.dumps(value) if value[:1] == '"' or any(c in value for c in "\t\n\r") else value


def _value(field: str) -> str:
    return str(json.loads(field)) if field[:1] == '"' else field


def load(folder: Path) -> Judgements:
    """Read an index's judgements; none where the folder is absent.

    Raises
    ------
    DamagedIndexError
        If a file is damaged.
    """
    if not folder.exists():
        return Judgements({}, {})
    try:
        queries = {}
        for line in (folder / "queries.jsonl").read_text(encoding="utf-8").split("\n"):
            if line:
                record = json.loads(line)
                queries[record["_id"]] = Query(record["_id"], record["text"], record["metadata"])
        qrels = {}
        for path in sorted((folder / "qrels").glob("*.tsv")):
            split: dict[str, dict[str, int]] = {}
            for line in path.read_text(encoding="utf-8").split("\n")[1:]:
                if line:
                    query_id, doc_id, grade = line.split("\t")
                    split.setdefault(_value(query_id), {})[_value(doc_id)] = int(grade)
            qrels[path.stem] = split
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"the judgements of the index are damaged ({error}); run: twindex check, then index again"
        raise DamagedIndexError(message) from error
    return Judgements(queries, qrels)
