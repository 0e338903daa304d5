"""A build that dies at any instant: what was published answers on, and the next build goes through."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.document import Document
from indexer.checking import check_index
from indexer.errors import IndexBusyError, NotAnIndexError
from indexer.layout import IndexLayout
from indexer.opening import open_index
from indexer.publication import writing
from search.retrieval.searcher import Searcher

WORDS = ("river", "water", "bank", "money", "loan", "boat")


def documents(seed: int, count: int = 12) -> list[Document]:
    rng = np.random.default_rng(seed)
    return [Document(f"d{number}", " ".join(rng.choice(WORDS, 4)) + f" s{seed}") for number in range(count)]


OLD, NEW = documents(1), [*documents(1)[2:], *documents(2, 14)[12:]]


def held(root: Path) -> list[tuple[str, str]]:
    """Return the documents of an index that has been found whole, and that answers."""
    report = check_index(root)
    assert report.is_whole, report
    searcher = Searcher.open(root)
    found = [(document.doc_id, document.text) for document in searcher.index.documents.iter_documents()]
    answer = searcher.search("river bank", 50).answers["static"]
    assert {hit.doc_id for hit in answer.hits} == {doc_id for doc_id, text in found if set(text.split()) & set(WORDS)}
    searcher.close()
    return found


def pairs(held_documents: Sequence[Document]) -> list[tuple[str, str]]:
    return [(document.doc_id, document.text) for document in held_documents]


def parts(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if ".part" in path.name]


def kill_at_every(step: int, builder: Any, root: Path, copy_index: Callable[[Path], Path], *, lexical: bool) -> int:
    """Kill a build before every so-many-th change it makes to the folder; return how many changes it makes."""
    kills = 0
    while True:
        kills += 1
        copied = copy_index(root)
        outcome = builder.run(copied, NEW, lexical=lexical, die_at=1 + (kills - 1) * step)
        if outcome == "done":
            return kills - 1
        assert outcome == "killed"
        before = held(copied)
        assert before in (pairs(OLD), pairs(NEW))
        assert builder.run(copied, NEW, lexical=lexical) == "done"
        assert held(copied) == pairs(NEW)
        assert parts(copied) == []
        shutil.rmtree(copied)


def test_a_build_killed_at_any_change_leaves_an_index_that_answers(
    builder: Any, tmp_path: Path, copy_index: Callable[[Path], Path]
) -> None:
    assert builder.run(tmp_path / "index", OLD) == "done"
    assert kill_at_every(5, builder, tmp_path / "index", copy_index, lexical=False) >= 5


@pytest.mark.slow
def test_a_build_killed_at_every_single_change_leaves_an_index_that_answers(
    builder: Any, tmp_path: Path, copy_index: Callable[[Path], Path]
) -> None:
    assert builder.run(tmp_path / "index", OLD, lexical=True) == "done"
    assert kill_at_every(1, builder, tmp_path / "index", copy_index, lexical=True) >= 20


def test_a_first_build_killed_leaves_no_index_and_says_so(builder: Any, tmp_path: Path) -> None:
    assert builder.run(tmp_path / "index", OLD, die_at=12) == "killed"
    with pytest.raises(NotAnIndexError, match=r"never ended.*run: twindex index again"):
        open_index(tmp_path / "index")
    assert builder.run(tmp_path / "index", OLD) == "done"
    assert held(tmp_path / "index") == pairs(OLD)


def kill_at_random(builder: Any, root: Path, how: str, *, seed: int, kills: int) -> None:
    """Kill updates at random instants until so many were killed; whatever is left is the old or the new index."""
    rng = np.random.default_rng(seed)
    live = documents(0)
    started = time.perf_counter()
    assert builder.run(root, live, lexical=True) == "done"
    duration = time.perf_counter() - started
    killed = attempt = 0
    while killed < kills:
        attempt += 1
        assert attempt < 20 * kills
        wanted = [*live[int(rng.integers(1, 4)) :], *documents(attempt + 1, 2)]
        wanted = list({document.doc_id: document for document in wanted}.values())
        outcome = builder.run(root, wanted, lexical=True, **{how: float(rng.uniform(0.005, 1.2 * duration))})
        # Without its child a build fails, says so, and is no less a build that was cut short.
        died = outcome == "killed" or outcome.startswith("IndexerError: building the lexical index failed")
        assert died or outcome == "done", outcome
        killed += died
        found = held(root)
        assert found in (pairs(live), pairs(wanted)), attempt
        assert died or found == pairs(wanted)
        live = wanted if found == pairs(wanted) else live
        if len(live) < 6:
            live = documents(attempt + 5000)
            assert builder.run(root, live, lexical=True) == "done"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["die_after", "group_dies_after", "children_die_after"])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_kills_at_random_instants_lose_nothing(builder: Any, tmp_path: Path, how: str, seed: int) -> None:
    # Nine times 23 are more than 200.
    if how == "children_die_after" and not Path("/proc/self/task").exists():
        pytest.skip("which children a process has is read from /proc")
    kill_at_random(builder, tmp_path / "index", how, seed=seed, kills=23)


def test_an_interrupted_build_cleans_up_and_the_index_answers(builder: Any, tmp_path: Path) -> None:
    root = tmp_path / "index"
    assert builder.run(root, OLD) == "done"
    many = documents(3, 4000)
    assert builder.run(root, many, interrupt_after=0.05).startswith("KeyboardInterrupt")
    assert parts(root) == []
    assert held(root) == pairs(OLD)
    assert check_index(root).notes == ()


def test_a_lock_left_by_a_killed_writer_is_recognised(builder: Any, build: Callable[..., Any], tmp_path: Path) -> None:
    assert builder.run(tmp_path / "index", OLD, die_at=10) == "killed"
    assert (tmp_path / "index" / "LOCK").read_text()
    summary = build(OLD, summary=True)
    assert any("ended while it was writing this index; nothing of the index is lost" in note for note in summary.notes)
    assert (tmp_path / "index" / "LOCK").read_text() == ""


def test_a_second_writer_is_refused_by_name(builder: Any, tmp_path: Path) -> None:
    root = tmp_path / "index"
    with writing(IndexLayout(root)):
        outcome = builder.run(root, OLD)
        assert outcome.startswith(f"IndexBusyError: process {os.getpid()} on ")
        with pytest.raises(IndexBusyError), writing(IndexLayout(root)):
            pass
    assert builder.run(root, OLD) == "done"


def test_writers_at_once_each_publish_or_are_refused(builder: Any, tmp_path: Path, tiny_vectors: Path) -> None:
    root = tmp_path / "index"
    builders = [builder, *(type(builder)(builder.static) for _ in range(2))]
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: outcomes.extend(one.run(root, OLD) for _ in range(4)))
        for one in builders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in builders[1:]:
        one.close()
    assert {outcome.split(":")[0] for outcome in outcomes} <= {"done", "IndexBusyError"}
    assert "done" in outcomes
    assert held(root) == pairs(OLD)
    assert len(list(root.glob("generation-*"))) <= 2


def read_while_publishing(builder: Any, root: Path, *, seconds: float, readers: int) -> tuple[int, int]:
    """Query with several readers while a writer publishes; return how many queries and publications there were."""
    assert builder.run(root, OLD, lexical=True) == "done"
    end = time.monotonic() + seconds
    failures: list[BaseException] = []
    queries = [0] * readers

    def read(number: int) -> None:
        stayed = Searcher.open(root)  # goes on although its generation is removed
        try:
            while time.monotonic() < end:
                for searcher in (Searcher.open(root), stayed):
                    answers = searcher.search("river bank", 5).answers
                    assert all(len(answer.hits) == 5 for answer in answers.values())
                    queries[number] += 1
                    if searcher is not stayed:
                        searcher.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    published = 0
    while time.monotonic() < end:
        assert builder.run(root, (OLD, NEW)[published % 2], lexical=published % 3 == 0) == "done"
        published += 1
    for thread in threads:
        thread.join()
    assert failures == []
    return sum(queries), published


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_readers_go_on_while_a_writer_publishes(builder: Any, tmp_path: Path) -> None:
    queries, published = read_while_publishing(builder, tmp_path / "index", seconds=3, readers=3)
    assert queries > 10
    assert published > 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ten_readers_and_a_writer_for_five_minutes(builder: Any, tmp_path: Path) -> None:
    queries, published = read_while_publishing(builder, tmp_path / "index", seconds=300, readers=10)
    assert queries > 1000
    assert published > 20
