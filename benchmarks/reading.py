"""Reading speed: megabytes of `.jsonl` and Parquet a second, files to documents, on one core."""

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from corpora.limits import MEBIBYTE
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.parquet import read_parquet
from corpora.readers.reader import Reader
from corpora.readers.records import read_jsonl

#: Documents as long as abstracts: the median of the scientific test collections.
_DOCUMENTS = 40_000
_WORDS = 180
_RUNS = 5


def measure() -> dict[str, dict[str, Any]]:
    """Return `reading_jsonl` and `reading_parquet` with `ours` in MB/s, the best of five runs.

    Millions of bytes of the file a second (of the text for Parquet, which is compressed), pinned to one core
    where the system can do that.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _measure(Path(folder))
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, allowed)


def _measure(folder: Path) -> dict[str, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("etaoinshrdlu"), rng.integers(2, 9))) for _ in range(20_000)])
    ranks = np.minimum(rng.zipf(1.2, (_DOCUMENTS, _WORDS)) - 1, len(words) - 1)
    records = [
        {"_id": str(number), "title": " ".join(words[row[:8]]), "text": " ".join(words[row])}
        for number, row in enumerate(ranks)
    ]
    jsonl, parquet = folder / "records.jsonl", folder / "records.parquet"
    with jsonl.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    pq.write_table(pa.Table.from_pylist(records), parquet)
    text_bytes = sum(len(record["title"]) + len(record["text"]) for record in records)
    return {
        "reading_jsonl": _speed(read_jsonl, jsonl, jsonl.stat().st_size),
        "reading_parquet": _speed(read_parquet, parquet, text_bytes),
    }


def _speed(reader: Reader, path: Path, size: int) -> dict[str, Any]:
    best = best_cpu = float("inf")
    for _ in range(_RUNS):
        started, cpu = time.perf_counter(), time.process_time()
        count = sum(1 for _ in reader(path, DEFAULT_OPTIONS, ReadLog()))
        best = min(best, time.perf_counter() - started)
        best_cpu = min(best_cpu, time.process_time() - cpu)
    return {
        "ours": round(size / best / 1e6, 1),
        "unit": "MB/s",
        "per_cpu_second": round(size / best_cpu / 1e6, 1),
        "documents": count,
        "megabytes": size // MEBIBYTE,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
