"""Encoded texts kept between runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.encoded import EncodedTexts, iter_blocks
from indexer.stores.documents import text_digest


def _digests(numbers: list[int]) -> np.ndarray:
    return np.frombuffer(b"".join(text_digest(f"text {number}") for number in numbers), dtype="V16")


def _vectors(numbers: list[int]) -> np.ndarray:
    return np.array([[number, -number, 0.5] for number in numbers], dtype=np.float32).reshape(-1, 3)


@given(st.lists(st.lists(st.integers(0, 400), unique=True, max_size=30), max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_what_was_added_is_found_after_reopening(tmp_path_factory, blocks: list[list[int]], seed: int) -> None:
    folder = tmp_path_factory.mktemp("encoded")
    held = EncodedTexts(folder, 3)
    for block in blocks:
        held.add(_digests(block), _vectors(block))
    again = EncodedTexts(folder, 3)
    known = sorted({number for block in blocks for number in block})
    np.random.default_rng(seed).shuffle(known)
    for opened in (held, again):
        np.testing.assert_array_equal(opened.gather(_digests(known)), _vectors(known))
        assert (opened.find(_digests([1000, 1001])) == -1).all()
    parts = list(iter_blocks(again, _digests(known)))
    np.testing.assert_array_equal(np.concatenate(parts) if parts else _vectors([]), _vectors(known))


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no zip", None])
def test_a_damaged_block_is_left_out_and_the_others_stay(tmp_path: Path, damage: bytes | None) -> None:
    held = EncodedTexts(tmp_path, 3)
    held.add(_digests([1, 2]), _vectors([1, 2]))
    held.add(_digests([3]), _vectors([3]))
    path = tmp_path / "block-000001.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    again = EncodedTexts(tmp_path, 3)
    assert (again.find(_digests([1, 2])) == -1).all()
    np.testing.assert_array_equal(again.gather(_digests([3])), _vectors([3]))
    with pytest.raises(KeyError, match="1 texts have not been encoded"):
        again.gather(_digests([1]))
    again.add(_digests([1, 2]), _vectors([1, 2]))
    np.testing.assert_array_equal(EncodedTexts(tmp_path, 3).gather(_digests([2, 3])), _vectors([2, 3]))


def test_vectors_of_another_dimension_are_not_taken_for_this_encoder(tmp_path: Path) -> None:
    EncodedTexts(tmp_path, 3).add(_digests([1]), _vectors([1]))
    assert (EncodedTexts(tmp_path, 4).find(_digests([1])) == -1).all()
