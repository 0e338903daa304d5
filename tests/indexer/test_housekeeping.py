"""What builds keep for the next one is cleared up when it outgrows its use."""

import os
from pathlib import Path

import numpy as np

from indexer.encoded import EncodedTexts
from indexer.housekeeping import clear_unused, drop_gone


def folder(root: Path, name: str, size: int, age: int) -> Path:
    path = root / name
    path.mkdir(parents=True)
    (path / "file").write_bytes(bytes(size))
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.glob("*/*")}


def test_the_longest_unused_goes_first_and_only_what_is_too_much(tmp_path: Path) -> None:
    used = folder(tmp_path, "a/texts-1", 100, 9)
    folder(tmp_path, "b/texts-2", 60, 2)
    folder(tmp_path, "b/encoder", 60, 5)
    (tmp_path / "b" / "made.json").write_text("{}")
    removed = clear_unused(tmp_path, [used], spare=10)
    assert [path.name for path in removed] == ["encoder"]
    assert names(tmp_path) == {"a/texts-1", "b/texts-2"}, "made.json goes with its encoder"


def test_what_fits_the_spare_room_stays(tmp_path: Path) -> None:
    folder(tmp_path, "b/texts-2", 60, 2)
    assert clear_unused(tmp_path, [], spare=60) == []
    assert clear_unused(tmp_path, [], spare=59) != []
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_gone_texts_are_dropped_when_they_are_the_most(tmp_path: Path, rng: np.random.Generator) -> None:
    digests = np.frombuffer(rng.bytes(16 * 10), "V16")
    vectors = rng.normal(size=(10, 3)).astype(np.float32)
    held = EncodedTexts(tmp_path, 3)
    held.add(digests[:7], vectors[:7])
    held.add(digests[7:], vectors[7:])
    drop_gone({tmp_path: held}, digests[:5])
    assert held.size == 10
    live = digests[[8, 1, 4, 2]]
    drop_gone({tmp_path: held}, live)
    for found in (held, EncodedTexts(tmp_path, 3)):
        assert found.size == 4
        np.testing.assert_array_equal(found.gather(live), vectors[[8, 1, 4, 2]])
        assert (found.find(digests[[0, 9]]) == -1).all()


def test_digests_that_share_their_first_half_are_told_apart(tmp_path: Path) -> None:
    digests = np.frombuffer(b"".join(b"same8byt" + bytes([0] * 7 + [number]) for number in (3, 1, 2)), "V16")
    held = EncodedTexts(tmp_path, 1)
    held.add(digests, np.array([[3.0], [1.0], [2.0]], np.float32))
    np.testing.assert_array_equal(held.gather(digests[[1, 2, 0]])[:, 0], [1.0, 2.0, 3.0])
    absent = np.frombuffer(b"same8byt" + bytes(8) + b"same8byt" + bytes([255] * 8), "V16")
    assert held.find(absent).tolist() == [-1, -1]
