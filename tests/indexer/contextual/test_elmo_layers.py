"""ELMo's layers, read as those of a transformer are."""

import numpy as np
import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.contextual.elmo import ElmoSpec, open_elmo
from indexer.contextual.elmo_layers import ElmoLayers, is_elmo
from search.diagnostics.collection_layers import collection_layers

TEXTS = ["The river bank, U.S. side.", "", "money!", *(f"I sat on bank {number}." for number in range(70))]


@pytest.fixture(scope="module")
def layers(shared_data):
    return ElmoLayers(open_elmo(ElmoSpec(str(shared_data / "elmo" / "allennlp"))))


def test_words_have_the_states_of_their_tokens(layers):
    found = dict(layers.word_states(TEXTS))
    assert sorted(found) == list(range(len(TEXTS)))
    assert layers.words(TEXTS[0]) == ["the", "river", "bank", "u.s", "side"]
    assert (layers.words(""), found[1].shape) == ([], (3, 0, 32))
    alone = layers.encoder.token_states(TEXTS[0])
    kept = [place for place, token in enumerate(alone.tokens) if token not in {",", "."}]
    np.testing.assert_allclose(found[0], alone.states[:, kept], atol=1e-5)


def test_pooled_states_are_the_encoders(layers):
    np.testing.assert_array_equal(layers.layer_states(TEXTS[:3]), layers.encoder.layer_states(TEXTS[:3]))


def test_a_folder_is_known_by_its_files(shared_data, tmp_path):
    assert is_elmo(shared_data / "elmo" / "bilm-tf")
    (tmp_path / "options.json").touch()
    assert not is_elmo(tmp_path)
    assert not is_elmo(tmp_path / "nowhere")


def test_the_survey_of_layers_takes_elmo(shared_data):
    texts = [f"The bank of river number {number} lends money to the boat." for number in range(12)]
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    collection = Collection("tiny", "test", lambda _log: iter(documents))
    rows = collection_layers(collection, model=str(shared_data / "elmo" / "allennlp"), progress=Silent())
    assert [row.layer for row in rows] == [0, 1, 2]
    # A token has one vector at layer 0, whatever stands beside it.
    assert rows[0].contextuality.self_similarity == pytest.approx(1.0, abs=1e-5)
    assert rows[2].contextuality.self_similarity < 1.0 - 1e-3
