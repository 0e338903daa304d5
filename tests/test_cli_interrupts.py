"""Ctrl-C, as a terminal sends it: to the command and all it has started."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indexer.checking import check_index
from search.retrieval.searcher import Searcher

ROOT = Path(__file__).resolve().parents[1]
Build = Callable[..., Path]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups are signalled on POSIX systems")


@pytest.fixture(autouse=True)
def _heeding_interrupts() -> Iterator[None]:
    # What a shell starts in the background ignores interrupts, and so would all that the tests start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(*arguments: str | Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cli", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )


def interrupted(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def wait_for(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def collection(path: Path) -> Path:
    lines = (json.dumps({"_id": f"n{number}", "text": f"river water {number} " * 30}) for number in range(30_000))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("stage", ["documents.sqlite", "lexical"])
def test_an_index_command_that_is_interrupted_leaves_the_index_as_it_was(
    stage: str, build: Build, tmp_path: Path
) -> None:
    root = build(["river bank", "money loan", "boat"])
    process = start("index", collection(tmp_path / "many.jsonl"), root, "-r", "bm25")
    wait_for(lambda: any(root.glob(f"generation-*.part/{stage}")) or process.poll() is not None)
    assert process.poll() is None
    assert interrupted(process) == (130, "", "stopped\n")
    assert check_index(root).is_whole
    assert check_index(root).notes == ()
    assert not list(root.glob("*.part"))
    assert len(Searcher.open(root).search("river").answers["bm25"].hits) == 1


def test_a_query_that_is_interrupted_while_it_waits_ends_quietly(build: Build) -> None:
    process = start("query", build(["river bank", "money loan"]), "-", "--json")
    assert process.stdin
    assert process.stdout
    process.stdin.write("river\n")
    process.stdin.flush()
    assert process.stdout.readline() == "{\n"
    status, _, said = interrupted(process)
    assert (status, said) == (130, "stopped\n")
