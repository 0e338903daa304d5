"""What `auto` sees in a real model, layer by layer."""

import pytest

from corpora.builtin.lee import open_lee
from indexer.whitening_strength import GeneralSpace, general_texts

pytestmark = [pytest.mark.real_model, pytest.mark.slow]


def test_raw_layers_want_whitening_and_the_tuned_output_hardly():
    from indexer.contextual.layer_reader import open_layers

    layers = open_layers()
    passages, sentences = general_texts([document.searchable_text for document in open_lee().background()])
    states = zip(layers.layer_states(passages), layers.layer_states(sentences), strict=True)
    spaces = [GeneralSpace.measure(long, short) for long, short in states]
    assert [space.tells_length for space in spaces] == [True] * 6 + [False]
    assert [space.strength for space in spaces] == pytest.approx([1.0] * 6 + [0.1])
    assert [space.share for space in spaces] == pytest.approx([0.5] * 7)
    assert spaces[6].anisotropy < 0.15 < 0.4 < min(space.anisotropy for space in spaces[:6])
