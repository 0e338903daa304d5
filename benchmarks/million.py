"""A million short texts: what building, holding, opening and asking such an index takes.

`python -m benchmarks.million [TEXTS] [--folder DIR] [--output FILE]`. Texts are the seeded ones of
`benchmarks.texts`. Each figure is of a process of its own. Memory is the largest sum of the resident sizes of the
building process and its children, read ten times a second; pages that they share count more than once. Queries are
runs of 3 to 8 words cut from other texts of the same kind; recall@10 compares the store's answer with exact search
over the same texts encoded anew, in 32-bit floats.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RETRIEVERS = "bm25,static,fitted:share=.03"
_QUERIES = 200
_BLOCK = 8192
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def measure(count: int, folder: Path) -> dict[str, Any]:
    """Return the figures of an index of so many texts, built below a folder."""
    alone = _run("build", count, folder / "static", "static")
    whole = _run("build", count, folder / "whole", RETRIEVERS)
    opened = [_run("open", count, folder / "whole")["open_seconds"] for _ in range(3)]
    names = [notation.split(":")[0] for notation in RETRIEVERS.split(",")]
    return {
        "texts": count,
        "retrievers": RETRIEVERS,
        "build_seconds": whole["seconds"],
        "build_peak_bytes": whole["peak_bytes"],
        "static_alone_seconds": alone["seconds"],
        "static_alone_peak_bytes": alone["peak_bytes"],
        "open_seconds": statistics.median(opened),
        "index_bytes": whole["index_bytes"],
        "build_cost_seconds": whole["cost_seconds"],
        "queries": {name: _run("query", count, folder / "whole", name) for name in names},
        "threads": os.cpu_count(),
    }


def _run(step: str, count: int, folder: Path, retrievers: str = "") -> dict[str, Any]:
    """Do one step in a process of its own; return what it says, with the most memory that it took."""
    command = [sys.executable, "-m", "benchmarks.million", "--step", step, str(count), "--folder", str(folder)]
    process = subprocess.Popen(
        [*command, "--retrievers", retrievers],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    peak, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.1):
            peak = max(peak, _resident_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    said, _ = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        message = f"step {step} {retrievers} ended with {process.returncode}"
        raise RuntimeError(message)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    if step == "build":
        found["peak_bytes"] = peak
    return found


def _resident_bytes(pid: int) -> int:
    """Return the resident bytes of a process and all below it; 0 where the system does not say."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, ValueError, IndexError):
        return 0
    return resident + sum(map(_resident_bytes, children))


def _build(count: int, folder: Path, retrievers: str) -> dict[str, Any]:
    from benchmarks.texts import short_texts, vocabulary
    from corpora.collection import Collection
    from corpora.document import Document
    from corpora.progress import Silent
    from corpora.read_log import ReadLog
    from indexer.build import BuildSettings, build_index
    from indexer.spec import parse_retrievers

    def read(_log: ReadLog) -> Iterator[Document]:
        return (Document(f"t{number}", text) for number, text in enumerate(short_texts(count)))

    vocabulary()  # that the texts are made here and not read is no part of building
    started = time.perf_counter()
    settings = BuildSettings(tuple(parse_retrievers(retrievers)))
    summary = build_index(Collection("short texts", "seeded", read), folder, settings, progress=Silent())
    return {
        "seconds": time.perf_counter() - started,
        "index_bytes": sum(path.stat().st_size for path in folder.glob("generation-*/**/*") if path.is_file()),
        "cost_seconds": {name: cost.seconds for name, cost in summary.costs.items()},
    }


def _open(folder: Path) -> dict[str, Any]:
    from search.retrieval.searcher import Searcher

    started = time.perf_counter()
    Searcher.open(folder)
    return {"open_seconds": time.perf_counter() - started}


def _query(folder: Path, name: str) -> dict[str, Any]:
    import numpy as np

    from benchmarks.texts import short_texts
    from indexer.approximation import cut_fragments
    from search.retrieval.searcher import Searcher

    queries = cut_fragments(short_texts(_QUERIES, seed=7), np.random.default_rng(7))
    searcher = Searcher.open(folder, [name])
    times = []
    for query in [queries[0], *queries]:
        started = time.perf_counter()
        searcher.search(query, 10)
        times.append((time.perf_counter() - started) * 1000)
    found = {"p50_ms": statistics.median(times[1:]), "p90_ms": sorted(times[1:])[int(0.9 * len(queries))]}
    if searcher.index.record(name).has_vectors:
        found["recall@10"] = _recall(searcher.index, name, queries)
    return {**found, "factory": searcher.index.record(name).factory, "queries": len(queries)}


def _recall(index: Any, name: str, queries: list[str]) -> float:
    import numpy as np

    from indexer.approximation import ExactBest
    from indexer.encoder import Role

    parts = index.vectors(name)
    best = ExactBest(parts.project(parts.encoder.encode(queries, role=Role.QUERY)))

    def blocks() -> Iterator[Any]:
        texts: list[str] = []
        for text in index.documents.iter_texts():
            texts.append(text)
            if len(texts) == _BLOCK:
                yield parts.project(parts.encoder.encode(texts))
                texts.clear()
        if texts:
            yield parts.project(parts.encoder.encode(texts))

    for _ in best.watch(blocks()):
        pass
    return best.recall(parts.store, np.arange(len(queries)))


def main() -> None:
    """Measure, print and write; or do one step, for a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where to build; a temporary folder where not given")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "million.json")
    parser.add_argument("--step", choices=["build", "open", "query"], help=argparse.SUPPRESS)
    parser.add_argument("--retrievers", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.step:
        case "build":
            print(json.dumps(_build(options.texts, options.folder, options.retrievers)))
        case "open":
            print(json.dumps(_open(options.folder)))
        case "query":
            print(json.dumps(_query(options.folder, options.retrievers)))
        case _:
            with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
                found = measure(options.texts, Path(temporary))
            said = json.dumps(found, indent=1)
            print(said)
            options.output.write_text(said + "\n")


if __name__ == "__main__":
    main()
