"""Contextuality, by hand; and the survey over a model that is made up."""

import numpy as np
import pytest

from search.diagnostics.layer_survey import JudgedTexts, survey_layers
from search.diagnostics.layers import (
    contextuality,
    explained_by_static,
    intra_sentence_similarity,
    self_similarity,
)

E1, E2 = np.eye(2, dtype=np.float32)


def test_self_similarity_is_the_mean_over_pairs():
    assert self_similarity(np.stack([E1, 3 * E1, E2])) == pytest.approx(1 / 3)
    assert self_similarity(np.stack([E1, 2 * E1])) == pytest.approx(1.0)
    assert np.isnan(self_similarity(E1[None]))


def test_intra_sentence_similarity_is_to_the_mean_vector():
    # Mean (1/2, 1/2): both words stand at 45 degrees to it.
    assert intra_sentence_similarity(np.stack([E1, E2])) == pytest.approx(0.5**0.5)
    assert np.isnan(intra_sentence_similarity(np.zeros((0, 2), np.float32)))


def test_explained_share_is_of_squared_singular_values():
    # Singular values 2 and 1: 4 of 5.
    assert explained_by_static(np.array([[2, 0], [0, 1]], np.float32)) == pytest.approx(0.8)
    assert explained_by_static(np.stack([E1, 5 * E1])) == pytest.approx(1.0)
    assert np.isnan(explained_by_static(np.zeros((2, 2), np.float32)))


def test_explained_share_is_that_of_the_singular_values(rng):
    for shape in ((5, 30), (30, 5)):
        x = rng.normal(size=shape).astype(np.float32)
        values = np.linalg.svd(x, compute_uv=False) ** 2
        assert explained_by_static(x) == pytest.approx(values[0] / values.sum(), rel=1e-5)


def test_what_anisotropy_accounts_for_is_taken_off(rng):
    words = [np.stack([E1, E1]), np.stack([E1, E2]), E1[None]]
    random = np.stack([E1, E2])
    found = contextuality(words, random, [0.5, 0.7, float("nan")], rng)
    assert found.self_similarity == pytest.approx(0.5)
    assert found.random_cosine == pytest.approx(0.0)
    assert found.adjusted_self_similarity == pytest.approx(0.5)
    assert found.adjusted_intra_sentence == pytest.approx(0.6)
    # One word explained whole, one by half; two random words always by half.
    assert found.adjusted_explained_static == pytest.approx(0.75 - 0.5)


def test_static_vectors_in_a_narrow_cone_are_as_static_as_in_a_wide_one(rng):
    table = rng.normal(size=(50, 40)).astype(np.float32)
    for offset in (0.0, 3.0):
        words = [np.repeat(row[None] + offset, 6, axis=0) for row in table]
        found = contextuality(words, table + offset, [], rng)
        assert found.self_similarity == pytest.approx(1.0)
        assert found.adjusted_self_similarity == pytest.approx(1.0 - found.random_cosine)
        assert found.explained_static == pytest.approx(1.0)


class MadeUpModel:
    """Layer 0: each word its own direction. Layer 1: the same, plus a large offset."""

    def __init__(self, vocabulary):
        self.rows = {word: row for row, word in enumerate(vocabulary)}
        self.passes = 0

    def words(self, text):
        return [word for word in text.lower().replace(".", " ").split() if word in self.rows]

    def _states(self, text):
        states = np.zeros((2, len(self.words(text)), len(self.rows)), np.float32)
        for place, word in enumerate(self.words(text)):
            states[:, place, self.rows[word]] = 1.0
        states[1] += 2.0
        return states

    def layer_states(self, texts):
        self.passes += len(texts)
        out = np.zeros((2, len(texts), len(self.rows)), np.float32)
        for number, text in enumerate(texts):
            if self.words(text):
                out[:, number] = self._states(text).mean(axis=1)
        return out

    def word_states(self, texts):
        for number in reversed(range(len(texts))):
            yield number, self._states(texts[number])


@pytest.fixture
def made_up():
    topics = [f"topic{number}" for number in range(12)]
    texts = [f"the {topic} is a {topic} here. The word {topic} stands in it again." for topic in topics]
    model = MadeUpModel([*topics, "the", "is", "a", "here", "word", "stands", "in", "it", "again"])
    queries = {f"q{number}": f"the {topic}" for number, topic in enumerate(topics)}
    qrels = {f"q{number}": {f"d{number}": 1} for number in range(len(topics))}
    return model, JudgedTexts([f"d{number}" for number in range(len(topics))], texts, queries, qrels)


def test_a_row_a_layer_from_one_pass(made_up, rng):
    model, collection = made_up
    rows = survey_layers(model, collection, rng)
    assert [row.layer for row in rows] == [0, 1]
    assert model.passes == len(collection.texts) + len(collection.queries)
    assert [row.raw for row in rows] == [1.0, 1.0]
    assert [row.whitened for row in rows] == [1.0, 1.0]
    assert rows[1].mean_cosine > 0.95 > rows[0].mean_cosine
    # Layer 0 is static: a word is the same everywhere.
    assert rows[0].contextuality.self_similarity == pytest.approx(1.0)
    assert rows[0].contextuality.explained_static == pytest.approx(1.0)


def test_rows_become_json_with_the_agreed_keys(made_up, rng):
    model, collection = made_up
    row = survey_layers(model, collection, rng)[1].to_json()
    assert row["layer"] == 1
    assert row["raw"]["nDCG@10"] == row["whitened"]["nDCG@10"] == 1.0
    assert {"mean_cosine", "self_similarity", "intra_sentence", "explained_static"} <= row.keys()


def test_without_judgements_and_without_repeated_words_figures_are_none(made_up, rng):
    model, collection = made_up
    unjudged = JudgedTexts(collection.doc_ids[:2], collection.texts[:2], collection.queries, {})
    row = survey_layers(model, unjudged, rng)[0].to_json()
    assert row["raw"]["nDCG@10"] is None
    assert row["self_similarity"] is None


def test_background_texts_are_read_in_both_lengths(made_up, rng):
    model, collection = made_up
    rows = survey_layers(model, collection, rng, background=collection.texts * 3)
    assert rows[1].general_cosine > 0.9
    assert rows[0].general_cosine < rows[1].general_cosine


def test_scores_that_tie_beyond_a_hundred_are_settled_by_id(rng):
    model = MadeUpModel(["same", "rare", *(f"w{number}" for number in range(5))])
    texts = ["same"] * 150 + ["rare w1"]
    ids = [f"d{number:03}" for number in range(151)]
    collection = JudgedTexts(ids, texts, {"q": "same"}, {"q": {"d149": 1}})
    assert survey_layers(model, collection, rng)[0].raw == 1.0
