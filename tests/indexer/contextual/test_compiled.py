import json
import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from corpora.progress import Silent
from indexer.contextual import compiled
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.conversion import Precision, compile_encoder
from indexer.contextual.runtime import cache_folder
from indexer.contextual.transformer import open_transformer
from indexer.encoder import Role
from indexer.errors import DamagedIndexError, FormatVersionError, PortabilityError

TEXTS = ["the river bank", "my account is empty", "a loan", "I sat on the bank of the river.", "fish", "boat of water"]


@pytest.fixture
def copied(tiny_fp32, tmp_path):
    """A copy of an encoder's folder, to be spoilt."""
    folder = tmp_path / "encoder"
    folder.mkdir()
    tiny_fp32.save(folder)
    return folder


def test_in_fp32_vectors_are_the_references(tiny, tiny_fp32):
    assert np.abs(tiny_fp32.encode(TEXTS) - tiny.encode(TEXTS)).max() < 1e-5
    assert np.abs(tiny_fp32.encode(TEXTS[:1]) - tiny.encode(TEXTS[:1])).max() < 1e-5
    assert tiny_fp32.dimension == 16


def test_rows_come_in_the_order_of_the_texts(tiny_fp32):
    texts = [("the river bank " * (number * 7 % 11 + 1)).strip() for number in range(300)]
    alone = {text: tiny_fp32.encode([text])[0] for text in dict.fromkeys(texts)}
    assert np.abs(tiny_fp32.encode(texts) - [alone[text] for text in texts]).max() < 1e-5


def test_blocks_of_a_large_collection_join(tiny_fp32):
    texts = [TEXTS[number % len(TEXTS)] for number in range(9000)]
    found = tiny_fp32.encode(texts)
    assert np.abs(found - np.tile(found[: len(TEXTS)], (1500, 1))).max() < 1e-5


def test_an_empty_text_is_a_row_of_zeros_whatever_stands_beside_it(tiny_fp32):
    for texts in (["a", "", "river bank"], ["a", " ", "b", "c", "\n", "d", "e"]):
        lengths = np.linalg.norm(tiny_fp32.encode(texts), axis=1)
        assert np.allclose(lengths, [bool(text.strip()) for text in texts], atol=1e-6)
    assert tiny_fp32.encode([]).shape == (0, 16)


def test_pieces_read_and_texts_cut_are_counted(tiny_fp32):
    assert tiny_fp32.max_tokens == 38
    assert tiny_fp32.count_tokens(["the river bank", "a", "bank " * 100]) == 5 + 3 + 40
    assert tiny_fp32.truncated(["the river bank", "bank " * 38, "bank " * 39]) == 1
    assert len(tiny_fp32.piece_offsets(["bank " * 100])[0]) == 100


def test_several_threads_may_encode_at_once(tiny_fp32):
    expected = tiny_fp32.encode(TEXTS)
    with ThreadPoolExecutor(4) as threads:
        bulk = [threads.submit(tiny_fp32.encode, TEXTS) for _ in range(8)]
        single = [threads.submit(tiny_fp32.encode, [text]) for text in TEXTS * 4]
    assert all(np.abs(each.result() - expected).max() < 1e-5 for each in bulk)
    assert all(np.abs(each.result()[0] - expected[row % len(TEXTS)]).max() < 1e-5 for row, each in enumerate(single))


def test_a_copied_folder_is_the_same_encoder(tiny_fp32, copied):
    again = compiled.load(copied)
    assert again.fingerprint == tiny_fp32.fingerprint
    assert np.array_equal(again.encode(TEXTS[:2]), tiny_fp32.encode(TEXTS[:2]))


@pytest.mark.parametrize("name", compiled.MODEL_FILES)
@pytest.mark.parametrize("damage", ["missing", "empty", "altered"])
def test_a_damaged_file_is_named(copied, name, damage):
    path = copied / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else b" " + path.read_bytes())
    with pytest.raises(DamagedIndexError, match=name.replace(".", r"\.")):
        compiled.load(copied)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', "null"])
def test_a_description_of_something_else_is_damage(copied, content):
    (copied / "encoder.json").write_text(content)
    with pytest.raises(DamagedIndexError, match=r"encoder\.json does not describe"):
        compiled.load(copied)


def test_a_later_format_is_refused_by_number(copied):
    record = json.loads((copied / "encoder.json").read_text())
    (copied / "encoder.json").write_text(json.dumps(record | {"format": 99}))
    with pytest.raises(FormatVersionError, match="has format version 99, this twindex reads 1"):
        compiled.load(copied)


def test_a_changed_space_under_an_old_fingerprint_is_refused(copied):
    record = json.loads((copied / "encoder.json").read_text())
    record["space"]["query_prompt"] = "query: "
    (copied / "encoder.json").write_text(json.dumps(record))
    with pytest.raises(PortabilityError, match="another space than its fingerprint"):
        compiled.load(copied)


@pytest.mark.parametrize(("layer", "pooling"), [(0, "mean"), (1, "cls"), (1, "max"), (2, "first-last")])
def test_any_layer_and_pooling_compiles(tiny_transformers, tmp_path, layer, pooling):
    spec = TransformerSpec(
        str(tiny_transformers["plain"]), layer=layer, pooling=pooling, query_prompt="my ", document_prompt="the "
    )
    reference = open_transformer(spec)
    encoder, gate = compile_encoder(reference, tmp_path, precision=Precision.FP32, calibration=TEXTS, progress=Silent())
    assert gate.smallest_cosine > 0.99999
    assert np.abs(encoder.encode(TEXTS) - reference.encode(TEXTS)).max() < 1e-5
    queries = encoder.encode(TEXTS, role=Role.QUERY)
    assert np.abs(queries - reference.encode(TEXTS, role=Role.QUERY)).max() < 1e-5
    assert np.abs(queries - encoder.encode(TEXTS)).max() > 1e-3


def test_without_a_cache_that_can_be_written_it_works_without(monkeypatch, tmp_path, copied):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TWINDEX_CACHE", str(tmp_path / "file" / "below"))
    assert cache_folder() is None
    assert compiled.load(copied).encode(TEXTS[:1]).shape == (1, 16)


def test_the_encoders_folder_is_only_read(monkeypatch, tmp_path, copied):
    monkeypatch.setenv("TWINDEX_CACHE", str(tmp_path / "cache"))
    for path in (*copied.iterdir(), copied):
        path.chmod(stat.S_IREAD | (stat.S_IEXEC if path.is_dir() else 0))
    before = sorted(path.name for path in copied.iterdir())
    compiled.load(copied).encode(TEXTS)
    assert sorted(path.name for path in copied.iterdir()) == before
    copied.chmod(stat.S_IRWXU)


QUERY = """
import sys, warnings
warnings.simplefilter("error")
from pathlib import Path
from indexer.contextual import compiled
vector = compiled.load(Path(sys.argv[1])).encode(["the river bank"])
heavy = {"torch", "transformers", "sentence_transformers", "nncf", "gensim", "scipy", "pandas", "openvino_telemetry"}
print(vector.shape, sorted(name for name in heavy if sys.modules.get(name)))
"""


def test_a_query_imports_no_model_library(copied):
    root = Path(compiled.__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", QUERY, str(copied)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.stdout.strip() == "(1, 16) []", done.stderr


@pytest.mark.real_model
def test_int8_vectors_are_near_the_references(minilm, minilm_int8, news):
    encoder, _ = minilm_int8
    cosines = np.einsum("nd,nd->n", encoder.encode(news), minilm.encode(news))
    assert cosines.min() > 0.985
    assert cosines.mean() > 0.996


@pytest.mark.real_model
def test_no_length_of_text_is_wrong_in_int8(minilm, minilm_int8, news):
    encoder, _ = minilm_int8
    words = " ".join(news).split()
    texts = [" ".join(words[number : number + size]) for number, size in enumerate(range(1, 80))]
    cosines = np.einsum("nd,nd->n", encoder.encode(texts), minilm.encode(texts))
    assert cosines[5:].min() > 0.98
    assert cosines.min() > 0.95


@pytest.mark.real_model
def test_the_batch_hardly_moves_int8_vectors(minilm_int8, news):
    encoder, _ = minilm_int8
    alone = np.vstack([encoder.encode([text]) for text in news[:12]])
    assert np.einsum("nd,nd->n", alone, encoder.encode(news)[:12]).min() > 0.999


@pytest.mark.real_model
def test_a_folder_can_be_moved(minilm_int8, tmp_path, news):
    encoder, _ = minilm_int8
    folder = tmp_path / "índice 索引"
    shutil.copytree(encoder.folder, folder)
    assert np.array_equal(compiled.load(folder).encode(news[:2]), encoder.encode(news[:2]))


def test_the_size_of_a_batch_moves_fp32_vectors_in_the_last_digits_alone(tiny_fp32):
    texts = ["the river bank", "money", "my boat is empty " * 4, "a loan of the bank"] * 5
    together = tiny_fp32.encode(texts)
    alone = np.concatenate([tiny_fp32.encode([text]) for text in texts])
    pairs = np.concatenate([tiny_fp32.encode(texts[start : start + 2]) for start in range(0, len(texts), 2)])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(pairs, together, atol=1e-5)
