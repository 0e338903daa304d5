import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, BertForMaskedLM, GPT2LMHeadModel

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.language_model import Head
from indexer.contextual.states import Place, Span, open_states, rows_of
from indexer.errors import ModelError, ModelNotFoundError

TEXT = "The river bank of water."


def reader_of(folder):
    return open_states(TransformerSpec(str(folder)))


def test_states_and_attentions_are_the_models_own(tiny_transformers):
    found = reader_of(tiny_transformers["plain"]).read(TEXT)
    model = AutoModel.from_pretrained(tiny_transformers["plain"], attn_implementation="eager").eval()
    with torch.inference_mode():
        out = model(torch.tensor(found.ids[None]), output_hidden_states=True, output_attentions=True)
    assert found.pieces == ("[CLS]", "the", "river", "bank", "of", "water", ".", "[SEP]")
    assert found.special.tolist() == [True] + [False] * 6 + [True]
    assert [TEXT[start:end] for start, end in found.offsets[1:-1]] == ["The", "river", "bank", "of", "water", "."]
    assert np.allclose(found.states, torch.cat(out.hidden_states).numpy(), atol=1e-6)
    assert np.allclose(found.attentions, torch.cat(out.attentions).numpy(), atol=1e-6)
    assert np.allclose(found.attentions.sum(axis=3), 1, atol=1e-6)
    assert np.array_equal(found.input_rows, model.embeddings.word_embeddings.weight.detach().numpy()[found.ids])


def test_a_masked_variant_is_the_text_with_the_mask_in_that_place(tiny_transformers):
    reader = reader_of(tiny_transformers["plain"])
    states = reader.read("the river bank")
    variants = reader.masked_states(states, [[2], [], [2, 1]])
    assert np.allclose(variants[0], reader.read("the [MASK] bank").states, atol=1e-5)
    assert np.allclose(variants[1], states.states, atol=1e-5)
    assert np.allclose(variants[2], reader.read("[MASK] [MASK] bank").states, atol=1e-5)
    assert reader.masked_states(states, []).shape == (0, 3, 5, 16)


def test_word_states_are_means_over_pieces_and_do_not_depend_on_the_batch(tiny_transformers):
    reader = reader_of(tiny_transformers["plain"])
    places = [
        Place("a xyz bank", Span(2, 5)),
        Place("the bank", Span(4, 8)),
        Place("my water is on the bank of the river.", Span(19, 23)),
    ]
    together = reader.word_states(places)
    first = reader.read(places[0].text)
    assert first.rows(places[0].span).tolist() == [2, 3, 4]
    assert np.allclose(together[:, 0], first.states[:, 2:5].mean(axis=1), atol=1e-5)
    for number, place in enumerate(places):
        assert np.allclose(together[:, number], reader.word_states([place])[:, 0], atol=1e-5)
    found = {number: states for number, _, states in reader.piece_states([place.text for place in places])}
    assert np.allclose(found[0], first.states[:, 1:-1], atol=1e-5)


def test_pooled_states_are_means_over_all_pieces(tiny_transformers):
    reader = reader_of(tiny_transformers["plain"])
    texts = ["river bank", "my bank account is empty.", "a"]
    found = reader.pooled_states(texts)
    for number, text in enumerate(texts):
        assert np.allclose(found[:, number], reader.read(text).states.mean(axis=1), atol=1e-5)


def test_a_word_beyond_what_the_model_reads_is_refused(tiny_transformers):
    reader = reader_of(tiny_transformers["plain"])
    text = "water " * 50 + "bank"
    assert reader.read(text).cut
    assert not reader.read("bank").cut
    with pytest.raises(ModelError, match="reads no piece of 'bank'"):
        reader.word_states([Place(text, Span(300, 304))])


def test_rows_share_a_character_with_the_span():
    offsets = np.array([[0, 0], [0, 3], [3, 5], [6, 9], [0, 0]])
    assert rows_of(offsets, Span(2, 4)).tolist() == [1, 2]
    assert rows_of(offsets, Span(5, 6)).tolist() == []


def test_a_masked_head_is_found_and_gives_its_own_logits(tiny_transformers):
    reader = reader_of(tiny_transformers["masked"])
    states = reader.read(TEXT)
    model = BertForMaskedLM.from_pretrained(tiny_transformers["masked"]).eval()
    with torch.inference_mode():
        direct = model.cls(torch.from_numpy(states.states)).numpy()
        own = model(torch.tensor(states.ids[None])).logits[0].numpy()
    found = reader.head_logits(states)
    assert reader.head is Head.MASKED
    assert np.allclose(found, direct, atol=1e-5)
    assert np.allclose(found[-1], own, atol=1e-5)


def test_a_causal_head_normalises_the_earlier_layers(tiny_transformers):
    reader = reader_of(tiny_transformers["causal"])
    states = reader.read(TEXT)
    model = GPT2LMHeadModel.from_pretrained(tiny_transformers["causal"]).eval()
    with torch.inference_mode():
        early = model.lm_head(model.transformer.ln_f(torch.from_numpy(states.states[1]))).numpy()
        own = model(torch.tensor(states.ids[None])).logits[0].numpy()
    found = reader.head_logits(states)
    assert reader.head is Head.CAUSAL
    assert np.allclose(found[1], early, atol=1e-5)
    assert np.allclose(found[-1], own, atol=1e-5)


def test_without_a_head_there_are_no_logits(tiny_transformers):
    reader = reader_of(tiny_transformers["plain"])
    assert reader.head is Head.NONE
    with pytest.raises(ModelError, match="no language-model head"):
        reader.head_logits(reader.read(TEXT))


def test_a_head_that_the_weights_lack_is_not_made_up(tiny_transformers, tmp_path):
    folder = tiny_transformers["plain"]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    assert reader_of(tmp_path).head is Head.NONE


def test_weights_that_lack_a_layer_are_refused(tiny_transformers, tmp_path):
    for path in tiny_transformers["plain"].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: array for name, array in weights.items() if "layer.1." not in name}
    save_file(kept, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="lack 16 arrays"):
        reader_of(tmp_path)


def test_the_mask_is_the_models_own(tiny_transformers):
    assert reader_of(tiny_transformers["masked"]).mask_piece == "[MASK]"


def test_an_unknown_model_is_named():
    with pytest.raises(ModelNotFoundError, match="neither a folder"):
        open_states(TransformerSpec("/no/such/model"))


@pytest.mark.real_model
def test_bank_moves_through_minilm_as_measured():
    reader = open_states()
    vectors = reader.word_states([Place("river bank", Span(6, 10)), Place("bank account", Span(0, 4))])
    first, second = vectors.astype(np.float64).transpose(1, 0, 2)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert cosines == pytest.approx([0.977, 0.850, 0.822, 0.824, 0.834, 0.848, 0.763], abs=6e-4)
    assert reader.head is Head.NONE
    assert reader.layers == 6
