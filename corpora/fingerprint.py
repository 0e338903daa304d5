"""A digest of what a collection says, so that the same input can be recognised."""

import hashlib
import json
from collections.abc import Mapping

from corpora.document import Document
from corpora.judgements import Qrels, Query


class CollectionFingerprint:
    """Digest of documents, queries and judgements, fed while they stream by.

    Where a document was read (`source`) does not count: the same content elsewhere is the same input.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self._digest = hashlib.sha256()

    def add_document(self, document: Document) -> None:
        """Take in one document; the order of documents counts."""
        self._feed("document", document.doc_id, document.title, document.text, dict(document.metadata))

    def add_judgements(self, queries: Mapping[str, Query], qrels: Mapping[str, Qrels]) -> None:
        """Take in queries and judgements; their order does not count."""
        for query_id in sorted(queries):
            self._feed("query", query_id, queries[query_id].text)
        for split in sorted(qrels):
            for query_id in sorted(qrels[split]):
                self._feed("qrels", split, query_id, sorted(qrels[split][query_id].items()))

    def hexdigest(self) -> str:
        """Return the digest of all that was taken in, as hexadecimal SHA-256."""
        return self._digest.hexdigest()

    def _feed(self, *parts: object) -> None:
        # JSON quotes its strings, so two different records never run together into the same bytes.
        self._digest.update(json.dumps(parts, sort_keys=True).encode())
        self._digest.update(b"\n")
