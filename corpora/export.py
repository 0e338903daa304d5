"""A collection written as a BEIR folder, which every tool of the field reads."""

import json
from pathlib import Path

from corpora.collection import Collection
from corpora.errors import OptionError


def export_beir(collection: Collection, folder: Path) -> int:
    """Write corpus.jsonl, queries.jsonl and qrels/<split>.tsv into a new folder; return how many documents.

    Raises
    ------
    OptionError
        If the folder exists and is not empty.
    CorpusError
        If the collection cannot be read.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} exists already; name a new folder to write to"
        raise OptionError(message)
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with (folder / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as handle:
        for document in collection.documents():
            record = {"_id": document.doc_id, "title": document.title, "text": document.text}
            handle.write(json.dumps({**record, "metadata": dict(document.metadata)}, ensure_ascii=False) + "\n")
            count += 1
    if not collection.queries:
        return count
    with (folder / "queries.jsonl").open("w", encoding="utf-8", newline="\n") as handle:
        for query in collection.queries.values():
            record = {"_id": query.query_id, "text": query.text}
            handle.write(json.dumps({**record, "metadata": dict(query.metadata)}, ensure_ascii=False) + "\n")
    for split, qrels in collection.qrels.items():
        (folder / "qrels").mkdir(exist_ok=True)
        with (folder / "qrels" / f"{split}.tsv").open("w", encoding="utf-8", newline="\n") as handle:
            handle.write("query-id\tcorpus-id\tscore\n")
            for query_id, grades in qrels.items():
                for doc_id, grade in grades.items():
                    _refuse_tabs(query_id, doc_id)
                    handle.write(f"{query_id}\t{doc_id}\t{grade}\n")
    return count


def _refuse_tabs(*ids: str) -> None:
    for identifier in ids:
        if any(mark in identifier for mark in "\t\r\n"):
            message = f"the id {identifier!r} holds a tab or a line break, which BEIR's judgements cannot; rename it"
            raise OptionError(message)
