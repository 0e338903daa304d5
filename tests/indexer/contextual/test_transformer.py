import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from corpora.progress import Silent
from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.transformer import load, open_transformer
from indexer.encoder import Role
from indexer.errors import DamagedIndexError, PortabilityError, SpecError

TEXTS = ["the river bank", "my account is empty", "a loan", "I sat on the bank of the river."]


def plain(folder, **options):
    return open_transformer(TransformerSpec(str(folder), **options), Silent())


def by_hand(folder, text, layer, pooling):
    """Pool hidden states of one text with numpy."""
    encoder = plain(folder)
    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = model(torch.tensor(encoder.pieces.ids([text])), output_hidden_states=True).hidden_states
    state = states[layer][0].numpy()
    pooled = {
        "mean": lambda: state.mean(axis=0),
        "cls": lambda: state[0],
        "max": lambda: state.max(axis=0),
        "first-last": lambda: (states[min(1, layer)][0].numpy().mean(axis=0) + state.mean(axis=0)) / 2,
    }[pooling]()
    return pooled / np.linalg.norm(pooled)


@pytest.mark.real_model
def test_vectors_are_those_of_sentence_transformers(minilm, news):
    texts = [*news[:20], "word " * 400, "C++ 机器学习"]
    theirs = SentenceTransformer(str(find_checkpoint(TransformerSpec()).folder), device="cpu").encode(texts)
    assert np.abs(minilm.encode(texts) - theirs).max() < 1e-5


@pytest.mark.parametrize(
    ("layer", "pooling"),
    [(0, "mean"), (0, "first-last"), (1, "cls"), (1, "max"), (2, "mean"), (2, "first-last")],
)
def test_any_layer_is_pooled_as_by_hand(tiny_transformers, layer, pooling):
    folder = tiny_transformers["plain"]
    found = plain(folder, layer=layer, pooling=pooling).encode(TEXTS)
    expected = [by_hand(folder, text, layer, pooling) for text in TEXTS]
    assert np.allclose(found, expected, atol=1e-5)


def test_a_pooling_without_a_layer_is_of_the_last(tiny_transformers):
    folder = tiny_transformers["plain"]
    assert np.allclose(
        plain(folder, pooling="max").encode(TEXTS[:1])[0], by_hand(folder, TEXTS[0], 2, "max"), atol=1e-5
    )


def test_a_layer_that_the_model_lacks_is_refused(tiny_transformers):
    with pytest.raises(SpecError, match="layers 0 to 2, asked for layer 3"):
        plain(tiny_transformers["plain"], layer=3)


def test_a_guessed_pooling_is_announced_and_a_chosen_one_is_not(tiny_transformers):
    told = Silent()
    open_transformer(TransformerSpec(str(tiny_transformers["plain"])), told)
    assert any("no modules.json" in note and "mean" in note for note in told.notes)
    told = Silent()
    open_transformer(TransformerSpec(str(tiny_transformers["plain"]), pooling="cls"), told)
    assert told.notes == []


def test_an_e5_model_without_prompts_is_pointed_out(tiny_transformers, tmp_path):
    shutil.copytree(tiny_transformers["plain"], tmp_path / "e5-small")
    told = Silent()
    open_transformer(TransformerSpec(str(tmp_path / "e5-small")), told)
    assert any('"query: "' in note for note in told.notes)
    told = Silent()
    open_transformer(TransformerSpec(str(tmp_path / "e5-small"), query_prompt="query: ", document_prompt="p: "), told)
    assert not any('"query: "' in note for note in told.notes)


def test_prompts_go_before_the_texts_of_their_role(tiny_transformers):
    folder = tiny_transformers["plain"]
    prompted = plain(folder, query_prompt="query: ", document_prompt="passage: ")
    bare = plain(folder)
    assert np.allclose(prompted.encode(TEXTS, role=Role.QUERY), bare.encode(["query: " + text for text in TEXTS]))
    assert np.allclose(prompted.encode(TEXTS), bare.encode(["passage: " + text for text in TEXTS]))
    assert prompted.fingerprint != bare.fingerprint


def test_an_empty_text_is_a_row_of_zeros(tiny):
    found = tiny.encode(["a", "", "  \n"])
    assert np.array_equal(np.linalg.norm(found, axis=1).round(5), [1, 0, 0])
    assert tiny.encode([]).shape == (0, 16)


def test_the_batch_moves_the_last_digits_only(tiny):
    texts = [("the river bank " * (number % 9 + 1)).strip() for number in range(150)]
    alone = np.vstack([tiny.encode([text]) for text in texts[:9]])
    assert np.abs(tiny.encode(texts)[:9] - alone).max() < 1e-5


def test_pieces_read_and_texts_cut_are_counted(tiny):
    assert tiny.max_tokens == 38
    assert tiny.count_tokens(["the river bank", "a", "bank " * 100]) == 5 + 3 + 40
    assert tiny.truncated(["the river bank", "bank " * 38, "bank " * 39]) == 1


def test_saved_and_opened_it_is_the_same_space(tiny, tmp_path):
    tiny.save(tmp_path)
    again = load(tmp_path)
    assert again.fingerprint == tiny.fingerprint
    assert np.array_equal(again.encode(TEXTS), tiny.encode(TEXTS))


def test_other_weights_in_the_same_place_are_refused(tiny_transformers, tmp_path):
    folder, saved = tmp_path / "model", tmp_path / "encoder"
    shutil.copytree(tiny_transformers["plain"], folder)
    saved.mkdir()
    plain(folder).save(saved)
    weights = {name: np.array(array) + 1 for name, array in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PortabilityError, match="other weights than when it was indexed"):
        load(saved)


def test_a_description_of_something_else_is_damage(tmp_path):
    (tmp_path / "encoder.json").write_text(json.dumps({"kind": "transformer"}))
    with pytest.raises(DamagedIndexError, match="does not describe a transformer"):
        load(tmp_path)
