import numpy as np
import pytest
import torch
from transformers import BertForMaskedLM

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.language_model import Head
from indexer.contextual.states import open_states
from search.diagnostics.anisotropy import unit
from search.diagnostics.lens import lens
from search.errors import DiagnosisError

TEXT = "the river bank of water."


def test_the_grid_equals_a_direct_computation_through_the_head(tiny_transformers):
    reader = open_states(TransformerSpec(str(tiny_transformers["masked"])))
    found = lens(TEXT, reader, items=4)
    model = BertForMaskedLM.from_pretrained(tiny_transformers["masked"]).eval()
    ids = torch.tensor([reader.tokenizer.pieces(TEXT)[1]])
    with torch.inference_mode():
        hidden = model.bert(ids, output_hidden_states=True).hidden_states
        for layer, states in enumerate(hidden):
            top = torch.softmax(model.cls(states)[0], dim=-1).topk(4, dim=-1)
            for place, cell in enumerate(found.cells[layer]):
                assert [reader.tokenizer.id_of(item.piece) for item in cell] == top.indices[place].tolist()
                assert [item.score for item in cell] == pytest.approx(top.values[place].tolist(), abs=1e-5)
    assert found.head is Head.MASKED
    assert "masked-language-model head" in found.explanation
    assert (len(found.cells), len(found.cells[0])) == (3, len(found.pieces))


def test_a_causal_model_is_read_through_its_head(tiny_transformers):
    found = lens(TEXT, open_states(TransformerSpec(str(tiny_transformers["causal"]))))
    assert found.head is Head.CAUSAL
    assert "say next" in found.explanation


def test_without_a_head_the_input_embeddings_are_compared_and_that_is_said(tiny_transformers):
    reader = open_states(TransformerSpec(str(tiny_transformers["plain"])))
    found = lens(TEXT, reader, items=1)
    assert found.head is Head.NONE
    assert "has no language-model head" in found.explanation
    cosines = unit(reader.read(TEXT).states[1, 3]) @ unit(reader.input_embeddings).T
    cell = found.cells[1][3][0]
    assert cell.piece == reader.piece_of(int(cosines.argmax()))
    assert cell.score == pytest.approx(cosines.max(), abs=1e-6)


def test_more_items_than_the_vocabulary_has_and_bad_input(tiny_transformers):
    reader = open_states(TransformerSpec(str(tiny_transformers["plain"])))
    assert len(lens("a", reader, items=10_000).cells[0][0]) == len(reader.input_embeddings)
    with pytest.raises(DiagnosisError, match="found an empty one"):
        lens("  ", reader)
    with pytest.raises(DiagnosisError, match="at least 1 item"):
        lens("a", reader, items=0)


@pytest.mark.real_model
def test_the_built_in_model_starts_from_its_own_rows():
    found = lens("We sat on the river bank.", open_states(), items=1)
    words = [cell[0].piece for cell in found.cells[0]]
    assert np.mean([word == piece for word, piece in zip(words, found.pieces, strict=True)]) > 0.7
    assert "all-MiniLM-L6-v2 has no language-model head" in found.explanation
