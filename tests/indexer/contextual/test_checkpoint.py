import json
import shutil
import time

import pytest
import torch

from indexer.contextual.checkpoint import BUILT_IN_NAME, TransformerSpec, find_checkpoint, model_identity
from indexer.errors import ModelError, ModelNotFoundError, SpecError, UntrustedPickleError

PUBLISHED = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@pytest.fixture
def model(tiny_transformers, tmp_path):
    """A copy of a plain model's folder, to be spoilt."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_transformers["plain"], folder)
    return folder


def find(folder, **options):
    return find_checkpoint(TransformerSpec(str(folder), **options))


def test_the_built_in_model_is_the_published_one():
    assert model_identity(TransformerSpec()) == (BUILT_IN_NAME, PUBLISHED)


def test_a_pickle_is_refused_unless_trusted(model):
    (model / "model.safetensors").unlink()
    torch.save({}, model / "pytorch_model.bin")
    with pytest.raises(UntrustedPickleError, match=r"pytorch_model\.bin is a pickle"):
        find(model)
    assert find(model, trust_pickle=True).weight_files == (model.resolve() / "pytorch_model.bin",)


def test_safetensors_are_preferred_to_a_pickle_beside_them(model):
    torch.save({}, model / "pytorch_model.bin")
    assert [path.name for path in find(model).weight_files] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([{"type": "evil.Module", "path": ""}], "asks for code of its own"),
        ([{"type": "sentence_transformers.models.Transformer", "path": "../.."}], "outside the model's folder"),
        ([{"path": ""}], "no list of modules"),
    ],
)
def test_a_list_of_modules_cannot_bring_code_or_leave_the_folder(model, modules, words):
    (model / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match=words):
        find(model)


def test_a_folder_that_holds_no_model_says_what_it_lacks(model, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no transformer"):
        find(tmp_path / "empty")
    (model / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no weights"):
        find(model)


def test_a_path_that_is_neither_folder_nor_id_is_said_so():
    with pytest.raises(ModelNotFoundError, match="neither a folder nor the id"):
        find("/no/such/folder")


def test_offline_an_unknown_id_fails_at_once(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFoundError, match="HF_HUB_OFFLINE forbids"):
        find("nobody/no-model-offline")


def test_without_network_an_unknown_id_fails_within_seconds(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.perf_counter()
    with pytest.raises(ModelNotFoundError, match="the hub cannot be reached"):
        find("nobody/no-model-unreachable")
    assert time.perf_counter() - started < 5


def test_prompts_come_from_the_configuration_and_yield_to_options(model):
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (model / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    found = find(model)
    assert (found.query_prompt(None), found.document_prompt(None)) == ("query: ", "passage: ")
    assert (found.query_prompt(""), found.document_prompt("text: ")) == ("", "text: ")


def test_positions_after_the_padding_index_are_not_for_text(model):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"model_type": "roberta", "max_position_embeddings": 514}))
    assert find(model).position_limit == 512


@pytest.mark.parametrize("options", [{"pooling": "median"}, {"layer": -1}, {"max_length": 3}])
def test_what_no_model_can_do_is_refused(options):
    with pytest.raises(SpecError):
        TransformerSpec(**options)
