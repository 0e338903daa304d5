"""All layers at once are what each layer is by itself."""

import numpy as np
import pytest

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.layer_reader import open_layers
from indexer.contextual.states import open_states

TEXTS = ["the river bank", "I sat on my boat, of a river.", "", "money"]


@pytest.fixture(scope="module")
def layers(tiny_transformers):
    return open_layers(TransformerSpec(model=str(tiny_transformers["plain"])))


@pytest.fixture(scope="module")
def one_by_one(tiny_transformers):
    return open_states(TransformerSpec(model=str(tiny_transformers["plain"])))


def test_pooled_states_are_the_means_of_all_pieces(layers, one_by_one):
    found = layers.layer_states(TEXTS)
    for number, text in enumerate(TEXTS):
        expected = one_by_one.read(text).states.mean(axis=1) if text else np.zeros((3, 16))
        np.testing.assert_allclose(found[:, number], expected, atol=1e-5)


def test_word_states_are_the_means_of_their_pieces(layers, one_by_one):
    found = dict(layers.word_states(TEXTS))
    assert [found[number].shape[:2] for number in range(4)] == [(3, 3), (3, 8), (3, 0), (3, 1)]
    alone = one_by_one.read(TEXTS[0])
    np.testing.assert_allclose(found[0], alone.states[:, ~alone.special], atol=1e-5)


def test_words_are_those_that_the_model_reads(layers):
    assert layers.words("The River, bank!") == ["the", "river", "bank"]
    assert layers.words("") == []
    assert len(layers.words("river " * 100)) < 40
