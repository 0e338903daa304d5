import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from indexer.encoder import WordEncoder
from indexer.errors import DamagedIndexError, ModelError, ModelNotFoundError
from indexer.static.token_tables import is_sentence_model, load, read_sentence_model

TOKENS = ["[UNK]", "[PAD]", "river", "bank", "##s"]


def model(folder, *, name="embeddings", tensors=None):
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(pad_id=1, pad_token="[PAD]")
    tokenizer.enable_truncation(2)
    folder.mkdir(exist_ok=True, parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(tensors or {name: np.eye(5, 3, k=-2, dtype=np.float32)}, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", ["embeddings", "embedding.weight"])
def test_a_text_is_the_mean_of_its_known_tokens_however_long(tmp_path, name):
    encoder = read_sentence_model(model(tmp_path, name=name))
    found = encoder.encode(["River banks river", "zzz", "", "bank \ud800"])
    np.testing.assert_allclose(found[0], np.array([2, 1, 1]) / np.sqrt(6), atol=1e-6)
    assert found[1:3].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert found[3].tolist() == [0, 1, 0]
    assert encoder.count_tokens(["River banks river", "zzz"]) == 4


def test_weights_and_mapping_are_applied(tmp_path):
    tensors = {
        "embeddings": np.array([[1, 0], [0, 1]], dtype=np.float16),
        "mapping": np.array([0, 0, 0, 1, 1]),
        "weights": np.array([0, 0, 1, 3, 1], dtype=np.float32),
    }
    encoder = read_sentence_model(model(tmp_path, tensors=tensors))
    np.testing.assert_allclose(encoder.encode(["river bank"]), np.array([[1, 3]]) / np.sqrt(10), atol=1e-6)


def test_word_weights_sum_to_the_vector_and_coverage_shows_the_unknown(tmp_path):
    encoder = read_sentence_model(model(tmp_path / "0_StaticEmbedding").parent)
    assert isinstance(encoder, WordEncoder)
    total = sum(weight * vector for _, weight, vector in encoder.word_weights("banks zzz"))
    np.testing.assert_allclose(total / np.linalg.norm(total), encoder.encode(["banks zzz"]))
    assert encoder.coverage("banks zzz") == (("bank", "##s"), ("zzz",))


def test_a_saved_encoder_opens_the_same(tmp_path):
    encoder = read_sentence_model(model(tmp_path / "source"))
    (tmp_path / "saved").mkdir()
    encoder.save(tmp_path / "saved")
    opened = load(tmp_path / "saved")
    assert opened.fingerprint == encoder.fingerprint
    assert opened.encode(["river banks zz"]).tolist() == encoder.encode(["river banks zz"]).tolist()
    assert json.loads((tmp_path / "saved" / "encoder.json").read_text())["kind"] == "token_table"
    (tmp_path / "saved" / "tokenizer.json").write_text("{}")
    with pytest.raises(DamagedIndexError, match=r"tokenizer\.json"):
        load(tmp_path / "saved")


def test_only_static_models_are_taken_for_static_models(tmp_path):
    assert is_sentence_model(model(tmp_path / "yes"))
    assert not is_sentence_model(model(tmp_path / "no", name="encoder.layer.0.weight"))
    assert not is_sentence_model(tmp_path)


@pytest.mark.parametrize("missing", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path, missing):
    (model(tmp_path) / missing).unlink()
    with pytest.raises(ModelNotFoundError, match=missing):
        read_sentence_model(tmp_path)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"other": np.ones((5, 3), np.float32)}, "expected a tensor 'embeddings'"),
        ({"embeddings": np.ones((4, 3), np.float32)}, "different models"),
        (
            {"embeddings": np.ones((2, 3), np.float32), "mapping": np.array([0, 1, 2, 0, 0])},
            "maps tokens to row 2",
        ),
        ({"embeddings": np.full((5, 3), np.nan, np.float32)}, "not finite"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path, tensors, message):
    with pytest.raises(ModelError, match=message):
        read_sentence_model(model(tmp_path, tensors=tensors))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff" * 100])
def test_a_damaged_file_is_named(tmp_path, name, content):
    (model(tmp_path) / name).write_bytes(content)
    with pytest.raises(ModelError, match=name):
        read_sentence_model(tmp_path)


def test_vectors_equal_model2vecs(tmp_path):
    model2vec = pytest.importorskip("model2vec", reason="model2vec is in the bench extra")
    folder = model(tmp_path)
    (folder / "config.json").write_text('{"normalize": true, "max_length": null}')
    texts = ["River banks river", "bank", "the zzz river"]
    expected = model2vec.StaticModel.from_pretrained(folder).encode(texts)
    np.testing.assert_allclose(read_sentence_model(folder).encode(texts), expected, atol=1e-6)
