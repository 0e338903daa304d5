import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from search.diagnostics.anisotropy import unit
from search.diagnostics.probe import PairStates, probe_pairs, probe_senses
from search.errors import DiagnosisError

WORDS = ["bank"] * 20 + ["bat"] * 20
SENSES = (["river"] * 10 + ["money"] * 10) + (["animal"] * 10 + ["club"] * 10)


@pytest.fixture
def vectors(rng):
    """Layer 0: a constant and noise. Layer 1: the same, and the sense in one small direction."""
    noise = 0.02 * rng.normal(size=(40, 30))
    plain = noise + 1.0
    telling = plain.copy()
    telling[:, 3] += 0.2 * np.tile([1.0] * 10 + [-1.0] * 10, 2)
    return np.stack([plain, telling])


def test_a_sense_hidden_behind_high_cosines_is_found(vectors):
    found = probe_senses(vectors, WORDS, SENSES)
    assert found.majority == 0.5
    assert (found.words, found.occurrences) == (2, 40)
    assert found.layers[0].accuracy < 0.75
    assert found.layers[1].accuracy == 1.0
    assert found.layers[1].different > 0.98
    assert found.layers[1].cosine_auc == 1.0
    assert found.layers[0].cosine_auc == pytest.approx(0.5, abs=0.15)


def test_cosine_figures_are_scikit_learns(vectors):
    found = probe_senses(vectors[:, :20], WORDS[:20], SENSES[:20]).layers[0]
    cosines = unit(vectors[0, :20]) @ unit(vectors[0, :20]).T
    upper = np.triu_indices(20, 1)
    same = np.equal.outer(np.array(SENSES[:20]), np.array(SENSES[:20]))[upper]
    assert found.cosine_auc == pytest.approx(roc_auc_score(same, cosines[upper]))
    assert found.same == pytest.approx(cosines[upper][same].mean())
    assert found.different == pytest.approx(cosines[upper][~same].mean())


def test_fewer_rows_than_dimensions_give_the_same_probe(rng):
    from search.diagnostics.probe import _predicted

    train, test = rng.normal(size=(12, 60)), rng.normal(size=(200, 60))
    labels = np.array([0, 1] * 6)
    scale = (train - train.mean(0)).std()
    direct = LogisticRegression(max_iter=500).fit((train - train.mean(0)) / scale, labels)
    expected = direct.predict((test - train.mean(0)) / scale)
    assert (_predicted(train, labels, test) == expected).mean() > 0.98


def test_what_cannot_be_cross_validated_is_left_out_and_counted(vectors):
    words = [*WORDS, "alone", "alone", "rare"]
    senses = [*SENSES, "one", "one", "x"]
    found = probe_senses(np.concatenate([vectors, vectors[:, :3]], axis=1), words, senses)
    assert found.occurrences == 40
    assert found.notes == ("3 occurrences without a second sense or a twin were left out",)
    with pytest.raises(DiagnosisError, match="no word has two senses"):
        probe_senses(vectors[:, :10], WORDS[:10], SENSES[:10])
    with pytest.raises(DiagnosisError, match="as many of each"):
        probe_senses(vectors, WORDS, SENSES[:10])


def test_pairs_are_judged_on_words_that_were_not_trained_on(rng):
    words = [f"word{number}" for number in range(40) for _ in range(2)]
    same = [True, False] * 40
    first = rng.normal(size=(1, 80, 20))
    second = np.where(np.array(same)[None, :, None], first, -first) + 0.1 * rng.normal(size=(1, 80, 20))
    answers = np.array(same, dtype=np.int64)
    found = probe_pairs(PairStates(first, second, answers), words)
    assert found.layers[0].accuracy == 1.0
    assert found.layers[0].cosine_auc == 1.0
    assert found.majority == 0.5
    assert found.standard_error == pytest.approx(0.5 / 80**0.5)
    # Noise that only repeats within a word teaches nothing about other words.
    blind = probe_pairs(PairStates(first, rng.normal(size=(1, 80, 20)), answers), words)
    assert blind.layers[0].accuracy == pytest.approx(0.5, abs=0.2)
    with pytest.raises(DiagnosisError, match="two words or more"):
        probe_pairs(PairStates(first[:, :2], second[:, :2], answers[:2]), words[:2])
    with pytest.raises(DiagnosisError, match="as many of each"):
        probe_pairs(PairStates(first, second, answers), words[:2])


def test_a_probe_learns_from_training_pairs_where_there_are_some(rng):
    first = rng.normal(size=(1, 60, 20))
    same = np.array([1, 0] * 30)
    train = PairStates(first, np.where(same[None, :, None] == 1, first, -first), same)
    asked = PairStates(first[:, :9], first[:, :9], np.ones(9, np.int64))
    found = probe_pairs(asked, ["bank"] * 9, train=train)
    assert found.layers[0].accuracy == 1.0
    assert (found.layers[0].same, found.layers[0].cosine_auc) == (pytest.approx(1.0), 0.5)
    # Told the opposite, it says the opposite.
    turned = PairStates(train.first, train.second, 1 - same)
    assert probe_pairs(asked, ["bank"] * 9, train=turned).layers[0].accuracy == 0.0
