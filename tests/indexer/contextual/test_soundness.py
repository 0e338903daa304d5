"""Folders that are no sound transformer: one line each, and nothing of theirs is run."""

import contextlib
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from corpora.progress import Silent
from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.states import open_states
from indexer.contextual.tokenization import open_tokenizer
from indexer.contextual.transformer import open_transformer
from indexer.errors import ModelError, UntrustedPickleError

HTML = "<!DOCTYPE html>\n<html><body>Not found</body></html>\n"


@pytest.fixture
def model(tiny_transformers, tmp_path):
    """A copy of a plain model's folder, to be spoilt."""
    return shutil.copytree(tiny_transformers["plain"], tmp_path / "model")


def refused(folder, said, *, opening=open_transformer, **options):
    with pytest.raises(ModelError, match=said) as caught:
        opening(TransformerSpec(str(folder), **options))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return caught.value


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize("name", ["embeddings", "embedding.weight"])
def test_a_static_sentence_model_is_told_from_a_transformer(model, name):
    save_file({name: np.eye(5, 3, dtype=np.float32)}, model / "model.safetensors")
    change(model / "config.json", model_type="model2vec")
    said = refused(model, "static sentence model .*not a transformer")
    assert f"token-table:model={model}" in str(said)
    (model / "0_StaticEmbedding").mkdir()
    refused(model, "static sentence model", opening=open_states)


def test_sentence_transformers_folders_with_and_without_modules_are_read(model, tmp_path):
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(model), device="cpu").save(str(tmp_path / "whole"))
    told = Silent()
    whole = open_transformer(TransformerSpec(str(tmp_path / "whole")), told)
    assert told.notes == []
    (tmp_path / "whole" / "modules.json").unlink()
    bare = open_transformer(TransformerSpec(str(tmp_path / "whole")), told)
    assert any("no modules.json" in note for note in told.notes)
    np.testing.assert_allclose(whole.encode(["the river bank"]), bare.encode(["the river bank"]), atol=1e-6)


@pytest.mark.parametrize("opening", [open_transformer, open_states])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HTML.encode(), "is no whole safetensors file"),
        (b"", "is no whole safetensors file"),
        (b"\xff" * 8 + b"{}", "is no whole safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n", "git LFS pointer"),
    ],
)
def test_weights_that_are_no_safetensors_are_named(model, opening, content, said):
    (model / "model.safetensors").write_bytes(content)
    assert "model.safetensors" in str(refused(model, said, opening=opening))


def test_a_file_in_place_of_its_folder_is_said_so(model):
    refused(model / "model.safetensors", "is a file; give the folder")


def test_cut_weights_are_named(model):
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(model, r"model\.safetensors is no whole safetensors file")


def test_weights_of_another_model_are_not_filled_up_with_random_numbers(model):
    save_file(
        {"classifier.weight": np.eye(4, dtype=np.float32)}, model / "model.safetensors", metadata={"format": "pt"}
    )
    refused(model, "the weights of .* lack .* arrays")
    refused(model, "the weights of .* lack .* arrays", opening=open_states)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", HTML, r"config\.json cannot be read as JSON .*line 1"),
        ("config.json", "[]", "holds no JSON object"),
        ("config.json", "{}", "names no model_type"),
        ("config.json", '{"model_type": 3}', "names no model_type"),
        ("config.json", '{"model_type": "no-such-kind"}', "cannot be loaded as a sentence encoder"),
        ("modules.json", HTML, r"modules\.json is no list of modules .*line 1"),
        ("tokenizer.json", HTML, r"tokenizer\.json holds no tokenizer|cannot be loaded"),
        ("tokenizer_config.json", HTML, r"tokenizer_config\.json cannot be read as JSON|cannot be loaded"),
        ("config_sentence_transformers.json", HTML, "cannot be read as JSON|cannot be loaded"),
        ("config_sentence_transformers.json", '{"prompts": ["query: "]}', "prompts is|cannot be loaded"),
        ("sentence_bert_config.json", '{"max_seq_length": "many"}', "max_seq_length is 'many'|cannot be loaded"),
    ],
)
def test_a_malformed_file_of_settings_is_one_line(model, name, content, said):
    (model / name).write_text(content)
    refused(model, said)


def test_a_tokenizer_that_is_no_tokenizer_is_named_before_passages_are_cut(model):
    (model / "tokenizer.json").write_text(HTML)
    refused(model, r"tokenizer\.json holds no tokenizer", opening=open_tokenizer)


def test_a_missing_tokenizer_is_one_line(model):
    for path in model.glob("*token*"):
        path.unlink()
    refused(model, "no tokenizer", opening=open_tokenizer)
    refused(model, "tokenizer|cannot be loaded")


@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("known", [True, False])
def test_code_that_a_model_brings_is_never_run(model, tmp_path, where, known, monkeypatch):
    marker = tmp_path / "owned"
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    (model / "modeling_own.py").write_text(f"import os\nos.mkdir({str(marker)!r})\nclass Own: pass\n")
    places = {"AutoConfig": "modeling_own.Own", "AutoModel": "modeling_own.Own", "AutoTokenizer": "modeling_own.Own"}
    change(model / where, auto_map=places)
    if known:
        # A kind that the library has itself needs none of it.
        with contextlib.suppress(ModelError):
            open_transformer(TransformerSpec(str(model)))
    else:
        change(model / "config.json", model_type="own-kind", architectures=["Own"])
        said = str(refused(model, "code of its own|cannot be loaded"))
        assert where != "config.json" or "auto_map: modeling_own.Own), which is never run" in said
        refused(model, "code of its own|cannot be loaded", opening=open_states)
    assert not marker.exists()


class Hostile:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (self.marker,))


def test_pickled_weights_alone_are_refused_and_a_hostile_one_does_not_run_even_when_trusted(model, tmp_path):
    (model / "model.safetensors").unlink()
    marker = tmp_path / "owned"
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile(str(marker))))
    for opening in (open_transformer, open_states):
        assert isinstance(refused(model, "--trust-pickle", opening=opening), UntrustedPickleError)
    refused(model, "cannot be loaded", trust_pickle=True)
    assert not marker.exists()


def test_trusted_pickled_weights_give_the_same_vectors(model, tiny_transformers):
    from safetensors.torch import load_file

    expected = open_transformer(TransformerSpec(str(model))).encode(["the river bank"])
    torch.save(load_file(model / "model.safetensors"), model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    found = open_transformer(TransformerSpec(str(model), trust_pickle=True)).encode(["the river bank"])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_pickle_beside_safetensors_is_never_opened(model, tmp_path):
    marker = tmp_path / "owned"
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile(str(marker))))
    open_transformer(TransformerSpec(str(model), trust_pickle=True))
    open_states(TransformerSpec(str(model), trust_pickle=True))
    assert not marker.exists()


def test_the_built_in_model_is_sound():
    assert find_checkpoint(TransformerSpec()).weight_files
