"""How building and updating grow with the collection: measured, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.spec import DEFAULT_RETRIEVERS

ROOT = Path(__file__).resolve().parents[2]
BUILD = """
import json, sys, time
from pathlib import Path
from benchmarks.texts import short_texts, vocabulary
from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.cost import peak_memory_bytes
from indexer.spec import parse_retrievers

count, changed, retrievers, root = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])

def read(_log):
    others = short_texts(changed, seed=9) if changed else iter(())
    step = count // changed if changed else count + 1
    for number, text in enumerate(short_texts(count)):
        yield Document(f"t{number}", next(others) if changed and number % step == 0 else text)

vocabulary()  # that texts are made here and not read is no part of building
started = time.perf_counter()
settings = BuildSettings(tuple(parse_retrievers(retrievers)))
build_index(Collection("texts", "test", read), root, settings, progress=Silent())
print(json.dumps({"seconds": time.perf_counter() - started, "peak": peak_memory_bytes()}))
"""


def build(count: int, root: Path, *, retrievers: str, changed: int = 0) -> dict[str, float]:
    command = [sys.executable, "-c", BUILD, str(count), str(changed), retrievers, str(root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_memory_grows_by_the_index_and_little_else(tmp_path: Path) -> None:
    small = build(10_000, tmp_path / "small", retrievers="bm25,static")
    large = build(100_000, tmp_path / "large", retrievers="bm25,static")
    # 90,000 more texts: 200 bytes of vector each, and the digests that staging remembers (about 150).
    assert large["peak"] - small["peak"] < 90_000 * (200 + 150) + 100e6


@pytest.mark.slow
@pytest.mark.real_model
def test_changing_one_in_a_hundred_of_twenty_thousand_texts_costs_under_a_twentieth(tmp_path: Path) -> None:
    retrievers = DEFAULT_RETRIEVERS
    whole = build(20_000, tmp_path / "index", retrievers=retrievers)
    update = build(20_000, tmp_path / "index", retrievers=retrievers, changed=200)
    assert update["seconds"] < 0.05 * whole["seconds"]
