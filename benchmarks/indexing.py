"""A collection indexed end to end: twindex with four retrievers against txtai (hybrid, content), the same model."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.querying import _model

_ROUNDS = 2

#: txtai with dense and BM25 indexes and the texts kept, over a BEIR corpus file.
TXTAI = """
import json, sys
from txtai import Embeddings
rows = (json.loads(line) for line in open(sys.argv[2], encoding="utf-8"))
texts = ((row["_id"], f"{row.get('title') or ''} {row['text']}".strip(), None) for row in rows)
embeddings = Embeddings(path=sys.argv[1], hybrid=True, content=True)
embeddings.index(texts)
embeddings.save(sys.argv[3])
print(embeddings.count())
"""


def compare(collection: str, rounds: int = _ROUNDS) -> dict[str, dict[str, Any]]:
    """Return documents a second of both, whole processes, alternating runs, medians, with peak memory.

    The peer reads a BEIR folder; for anything else nothing is compared.
    """
    folder = Path(collection)
    if not (folder / "corpus.jsonl").exists():
        return {}
    documents = sum(1 for line in (folder / "corpus.jsonl").open(encoding="utf-8") if line.strip())
    runs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as temporary:
            script = Path(temporary) / "script.py"
            script.write_text(TXTAI)
            target = Path(temporary) / "ours"
            ours = [sys.executable, "-m", "cli", "index", str(folder), str(target), "--window", "off"]
            ours += ["-r", "bm25,static,contextual,whitened"]
            peer = [sys.executable, str(script), _model(), str(folder / "corpus.jsonl"), f"{temporary}/peer"]
            runs.append((_measured(ours), _measured(peer)))
    mine, theirs = ([pair[side] for pair in runs] for side in (0, 1))
    row = {
        "ratio": statistics.median(peer[0] / own[0] for own, peer in runs),
        "ours": documents / statistics.median(seconds for seconds, _ in mine),
        "peer": documents / statistics.median(seconds for seconds, _ in theirs),
        "unit": "documents/s",
        "documents": documents,
        "rounds": rounds,
        "ours_peak_bytes": max(peak for _, peak in mine),
        "peer_peak_bytes": max(peak for _, peak in theirs),
        "threads": os.cpu_count(),
    }
    return {"index_scifact": row}


def _measured(command: list[str]) -> tuple[float, int]:
    """Return seconds and peak resident bytes of a process, its children apart."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"},
    )
    stderr = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{command[1:3]} failed: {stderr.decode(errors='replace')[-500:]}"
        raise RuntimeError(message)
    return time.perf_counter() - started, usage.ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1]), indent=1))
