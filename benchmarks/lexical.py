"""Whoosh against bm25s, for the record: building an index of abstracts, and a query."""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpora.catalog import open_collection
from indexer.stores.lexical import LexicalStore, analyse, build

_QUERIES = 50


def compare(collection: str) -> dict[str, dict[str, Any]]:
    """Return `lexical_build` (documents/s) and `lexical_query` (ms); ratios above 1 are in Whoosh's favour."""
    import bm25s

    opened = open_collection(collection)
    texts = [document.searchable_text for document in opened.documents()]
    queries = [query.text for query in opened.queries.values()][:_QUERIES]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        build(texts, Path(folder))
        ours_build = time.perf_counter() - started
        started = time.perf_counter()
        peer = bm25s.BM25()
        peer.index([analyse(text) for text in texts], show_progress=False)
        peer_build = time.perf_counter() - started
        store = LexicalStore.open(Path(folder))
        ours, theirs = [], []
        for query in queries:
            started = time.perf_counter()
            store.search(query, 10)
            ours.append((time.perf_counter() - started) * 1000)
            started = time.perf_counter()
            peer.retrieve([analyse(query)], k=10, show_progress=False)
            theirs.append((time.perf_counter() - started) * 1000)
    return {
        "lexical_build": {
            "ratio": peer_build / ours_build,
            "ours": len(texts) / ours_build,
            "peer": len(texts) / peer_build,
            "unit": "documents/s",
            "threads": os.cpu_count(),
        },
        "lexical_query": {
            "ratio": statistics.median(peer / own for own, peer in zip(ours, theirs, strict=True)),
            "ours": statistics.median(ours),
            "peer": statistics.median(theirs),
            "unit": "ms",
            "threads": os.cpu_count(),
        },
    }


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1]), indent=1))
