import re
import shutil

import numpy as np
import pytest

from indexer.contextual import compiled
from indexer.encoder import LoadingEncoder


def opened(folder, tiny_fp32):
    folder.mkdir()
    tiny_fp32.save(folder)
    return compiled.load(folder)


def test_a_text_padded_to_a_length_has_the_vector_it_has_in_a_batch(tmp_path, tiny_fp32):
    encoder = opened(tmp_path / "encoder", tiny_fp32)
    texts = [("river bank " * count).strip() for count in (1, 3, 14, 15, 16, 17, 40)]
    batch = encoder.encode(texts)
    for text, expected in zip(texts, batch, strict=True):
        assert np.abs(encoder.encode([text])[0] - expected).max() < 1e-5


@pytest.mark.real_model
def test_no_length_has_a_kernel_that_is_wrong(minilm_int8):
    encoder, _ = minilm_int8
    sentence = "the bank of a river is where the water ends and people sit fishing for trout on fine days in may"
    words = re.findall(r"\w+", sentence) * 4
    texts = [" ".join(words[:count]) for count in range(1, 70)]
    batch = encoder.encode(texts)
    alone = np.vstack([encoder.encode([text]) for text in texts])
    assert np.einsum("nd,nd->n", batch, alone).min() > 0.99
    reference = np.vstack([encoder.encode([text, text, text, text, text])[0] for text in texts[::8]])
    assert np.einsum("nd,nd->n", reference, alone[::8]).min() > 0.99


def test_an_earlier_longer_text_leaves_nothing_behind(tmp_path, tiny_fp32):
    encoder = opened(tmp_path / "encoder", tiny_fp32)
    first = encoder.encode(["fish"])
    encoder.encode(["I sat on the bank of the river with a loan and a boat of water"])
    assert np.array_equal(encoder.encode(["fish"]), first)


def test_loading_is_counted_once_for_each_length_and_apart(tmp_path, tiny_fp32):
    encoder = opened(tmp_path / "encoder", tiny_fp32)
    assert isinstance(encoder, LoadingEncoder)
    assert encoder.loading_seconds == 0.0
    encoder.encode(["fish"])
    loaded = encoder.loading_seconds
    encoder.encode(["the river bank"])
    assert encoder.loading_seconds == loaded > 0.0


def test_what_is_held_answers_after_its_files_are_gone(tmp_path, tiny_fp32):
    encoder = opened(tmp_path / "encoder", tiny_fp32)
    encoder.hold()
    shutil.rmtree(tmp_path / "encoder")
    long = "the river bank " * 12
    assert np.abs(encoder.encode(["fish", long.strip()]) - tiny_fp32.encode(["fish", long.strip()])).max() < 1e-6
