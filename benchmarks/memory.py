"""Peak resident memory: of each side of the comparisons, and of indexing 10,000 and 100,000 short texts.

`python -m benchmarks.memory`. Each figure is of a process of its own; imports and models are part of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.querying import SCRIPT, _model

_TEXTS = 5_000
_SIZES = (10_000, 100_000)
_INDEXED = "bm25,static,contextual"

#: Index `sys.argv[1]` seeded short texts with the retrievers of `sys.argv[2]` into the folder `sys.argv[3]`.
INDEX = """
import sys
from pathlib import Path
from benchmarks.texts import short_texts
from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.spec import parse_retrievers

def read(_log):
    for number, text in enumerate(short_texts(int(sys.argv[1]))):
        yield Document(f"t{number}", text)

settings = BuildSettings(tuple(parse_retrievers(sys.argv[2])))
build_index(Collection("texts", "test", read), Path(sys.argv[3]), settings, progress=Silent())
"""
ENCODE_OURS = """
import sys
from pathlib import Path
from benchmarks.texts import short_texts
from indexer.encoders import open_encoder
open_encoder(Path(sys.argv[2])).encode(list(short_texts(int(sys.argv[1]))))
"""
ENCODE_PEER = """
import sys
from benchmarks.texts import short_texts
from sentence_transformers import SentenceTransformer
SentenceTransformer(sys.argv[2], device="cpu").encode(list(short_texts(int(sys.argv[1]))), batch_size=32)
"""


def measure() -> dict[str, dict[str, Any]]:
    """Return megabytes of each; ratios above 1 say how many times as much the peer takes."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / str(size) for size in _SIZES]
        for size, folder in zip(_SIZES, folders, strict=True):
            started = time.perf_counter()
            peak = _peak([INDEX, str(size), _INDEXED, str(folder)])
            stored = sum(path.stat().st_size for path in folder.glob("generation-*/*/vectors.faiss"))
            found[f"memory_index_{size}_texts"] = {
                "ours": peak / 1e6,
                "unit": "MB",
                "texts": size,
                "faiss_mb": stored / 1e6,
                "seconds": time.perf_counter() - started,
            }
        generation = next(folders[0].glob("generation-*"))
        encoder, vectors = str(generation / "contextual" / "encoder"), str(generation / "contextual" / "vectors.faiss")
        count, model = str(_TEXTS), _model()
        found["memory_contextual"] = _pair(
            _peak([ENCODE_OURS, count, encoder]), _peak([ENCODE_PEER, count, model]), texts=_TEXTS
        )
        query = "what the court said of the bank"
        found["memory_query"] = _pair(
            _peak(["from cli import main; main()", "query", str(folders[0]), query, "-r", "contextual"]),
            _peak([SCRIPT, model, vectors, query]),
            texts=_SIZES[0],
        )
    return found


def _pair(ours: int, peer: int, *, texts: int) -> dict[str, Any]:
    return {"ratio": peer / ours, "ours": ours / 1e6, "peer": peer / 1e6, "unit": "MB", "texts": texts}


def _peak(arguments: list[str]) -> int:
    """Return the most bytes that a Python process (or a child of it) held at once."""
    process = subprocess.Popen(
        [sys.executable, "-c", *arguments],
        cwd=Path(__file__).resolve().parents[1],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"a measured process ended with {process.returncode}: {arguments[1:]}"
        raise RuntimeError(message)
    return usage.ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
