"""A full disk and one that may not be written to: the last published generation answers, a rerun works."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.document import Document
from indexer.checking import check_index
from indexer.encoded import EncodedTexts
from indexer.errors import NotAnIndexError
from indexer.opening import open_index
from search.retrieval.searcher import Searcher

WORDS = ("river", "water", "bank", "money", "loan", "boat")
ROOT = Path(__file__).resolve().parents[3]


def documents(seed: int, count: int = 12) -> list[Document]:
    rng = np.random.default_rng(seed)
    return [Document(f"d{number}", " ".join(rng.choice(WORDS, 4)) + f" s{seed}") for number in range(count)]


OLD, NEW, MANY = documents(1), documents(2, 14), documents(4, 6000)


def mount(folder: Path, *options: str) -> None:
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("a small disk can be mounted by root alone")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("small disks are mounted on Linux")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "-t", "tmpfs", "-o", "size=600k", "tmpfs")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(folder: Path) -> Path:
    """Leave not one byte free."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


def held(root: Path) -> list[tuple[str, str]]:
    """Return the documents of an index that is whole and answers."""
    report = check_index(root)
    assert report.is_whole, report
    searcher = Searcher.open(root)
    assert all(answer.hits for answer in searcher.search("river bank", 50).answers.values())
    found = [(document.doc_id, document.text) for document in searcher.index.documents.iter_documents()]
    searcher.close()
    return found


def pairs(given: list[Document]) -> list[tuple[str, str]]:
    return [(document.doc_id, document.text) for document in given]


def failed_in_one_line(outcome: str) -> bool:
    return outcome.split(":", maxsplit=1)[0] in {"OSError", "IndexerError", "PermissionError"} and "\n" not in outcome


@pytest.mark.parametrize("lexical", [False, True])
def test_a_full_disk_fails_the_update_and_not_the_index(builder: Any, small_disk: Path, lexical: bool) -> None:
    root = small_disk / "index"
    assert builder.run(root, OLD, lexical=lexical) == "done"
    assert failed_in_one_line(builder.run(root, MANY, lexical=lexical))
    assert held(root) == pairs(OLD)
    assert not list(root.glob("*.part"))
    assert builder.run(root, NEW, lexical=lexical) == "done"
    assert held(root) == pairs(NEW)


def test_an_index_on_a_disk_without_a_free_byte_answers_and_is_updated_later(builder: Any, small_disk: Path) -> None:
    root = small_disk / "index"
    assert builder.run(root, OLD, lexical=True) == "done"
    filling = fill_up(small_disk)
    assert held(root) == pairs(OLD)
    assert failed_in_one_line(builder.run(root, NEW, lexical=True))
    assert held(root) == pairs(OLD)
    filling.unlink()
    assert builder.run(root, NEW, lexical=True) == "done"
    assert held(root) == pairs(NEW)
    assert check_index(root).notes == ()


def test_a_first_build_on_a_full_disk_leaves_no_index_and_a_rerun_makes_one(builder: Any, small_disk: Path) -> None:
    root = small_disk / "index"
    assert failed_in_one_line(builder.run(root, MANY, lexical=True))
    with pytest.raises(NotAnIndexError):
        open_index(root)
    mount(small_disk, "-o", "remount,size=20m")
    assert builder.run(root, MANY, lexical=True) == "done"
    assert held(root) == pairs(MANY)


def test_a_disk_mounted_read_only_answers_and_is_updated_later(builder: Any, small_disk: Path) -> None:
    root = small_disk / "index"
    assert builder.run(root, OLD, lexical=True) == "done"
    mount(small_disk, "-o", "remount,ro")
    outcome = builder.run(root, NEW, lexical=True)
    assert failed_in_one_line(outcome)
    assert "Read-only file system" in outcome
    assert str(root) in outcome
    assert held(root) == pairs(OLD)
    assert check_index(root).notes == ()
    mount(small_disk, "-o", "remount,rw")
    assert builder.run(root, NEW, lexical=True) == "done"
    assert held(root) == pairs(NEW)


def test_a_folder_that_may_not_be_written_to_is_left_alone_and_answers(builder: Any, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write to any folder: the read-only disk above stands for it")
    root = tmp_path / "index"
    assert builder.run(root, OLD) == "done"
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert builder.run(root, NEW).startswith("PermissionError")
    assert held(root) == pairs(OLD)


#: A model of one product, compiled through the cache as every encoder is, in a process of its own.
COMPILE = """
import sys
from pathlib import Path
import numpy as np, openvino
from openvino import opset13 as ops
from indexer.contextual.runtime import Precision, compile_model
given = ops.parameter([-1, 4], np.float32)
weights = ops.constant(np.eye(4, dtype=np.float32) * 2)
path = Path(sys.argv[1])
openvino.save_model(openvino.Model([ops.matmul(given, weights, False, False)], [given], "doubling"), path)
compiled = compile_model(path, Precision.FP32, "LATENCY")
print(compiled([np.ones((1, 4), np.float32)])[0].tolist())
"""


def compiled(tmp_path: Path, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(tmp_path / "doubling.xml")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TWINDEX_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


ANSWER = "[[2.0, 2.0, 2.0, 2.0]]"


def test_a_compile_cache_that_cannot_be_written_changes_no_answer(tmp_path: Path, small_disk: Path) -> None:
    assert compiled(tmp_path, small_disk) == ANSWER
    kept = list(small_disk.rglob("*.blob"))
    assert len(kept) == 1
    kept[0].unlink()
    filling = fill_up(small_disk)
    assert compiled(tmp_path, small_disk) == ANSWER
    filling.unlink()
    mount(small_disk, "-o", "remount,ro")
    assert compiled(tmp_path, small_disk) == ANSWER


def test_a_compile_cache_that_is_no_folder_or_holds_rubbish_changes_no_answer(tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("")
    assert compiled(tmp_path, nothing) == ANSWER
    cache = tmp_path / "cache"
    assert compiled(tmp_path, cache) == ANSWER
    (blob,) = cache.rglob("*.blob")
    size = blob.stat().st_size
    for content in (b"", blob.read_bytes()[: size // 2], bytes(size)):
        blob.chmod(0o600)
        blob.write_bytes(content)
        assert compiled(tmp_path, cache) == ANSWER


def test_what_was_encoded_before_the_disk_ran_full_is_kept(small_disk: Path) -> None:
    folder = small_disk / "encoded"
    held_texts = EncodedTexts(folder, 4)
    digests = np.frombuffer(os.urandom(16 * 100), "V16")
    held_texts.add(digests, np.ones((100, 4), np.float32))
    filling = fill_up(small_disk)
    with pytest.raises(OSError, match="space"):
        held_texts.add(np.frombuffer(os.urandom(16 * 100), "V16"), np.ones((100, 4), np.float32))
    filling.unlink()
    again = EncodedTexts(folder, 4)
    assert again.size == 100
    assert (again.find(digests) >= 0).all()
