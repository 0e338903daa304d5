import math

import numpy as np
import pytest
from gensim.test.utils import datapath

from indexer.static.word_vectors import WordVectors, keyed_vectors, load_word_vectors
from search.diagnostics.word_similarity import WordPair, with_even_features, word_pairs, word_similarity


def test_spearman_of_hand_made_vectors_ignores_pairs_that_are_not_covered():
    vectors = WordVectors(["a", "b", "c"], np.array([[1, 0], [1, 1], [0, 1]], dtype=np.float32), "test")
    pairs = [
        WordPair("A", "b", 3.0),
        WordPair("b", "zz", 9.0),
        WordPair("a", "c", 1.0),
        WordPair("a", "a", 2.0),
    ]
    # cosines .707, 0, 1 against 3, 1, 2: ranks 2 1 3 and 3 1 2, rho = 1 - 6 * 2 / 24
    found = word_similarity(vectors, pairs)
    assert found.spearman == pytest.approx(0.5)
    assert (found.covered, found.pairs) == (3, 4)


def test_nothing_covered_and_equal_scores_give_no_number():
    vectors = WordVectors(["a", "b"], np.eye(2, dtype=np.float32), "test")
    assert math.isnan(word_similarity(vectors, [WordPair("x", "y", 1.0)]).spearman)
    assert math.isnan(word_similarity(vectors, [WordPair("a", "b", 1.0), WordPair("b", "a", 1.0)]).spearman)


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("name", "file", "expected", "size"),
    [("wordsim353", "wordsim353.tsv", 0.5033, 353), ("simlex999", "simlex999.txt", 0.2646, 999)],
)
def test_glove_correlates_as_gensim_says(name, file, expected, size):
    vectors = load_word_vectors("glove")
    found = word_similarity(vectors, word_pairs(name))
    assert (found.covered, found.pairs) == (size, size)
    assert found.spearman == pytest.approx(expected, abs=1e-4)
    # gensim's limit: all 400,000 words, as ours
    keyed = keyed_vectors(vectors)
    _, reference, missed = keyed.evaluate_word_pairs(datapath(file), restrict_vocab=400_000)
    assert found.spearman == pytest.approx(reference.statistic, abs=1e-6)
    assert missed == 0


def test_features_of_one_length_by_hand():
    vectors = WordVectors(["a", "b"], np.array([[3, 0, 1], [4, 0, 0]], dtype=np.float32), "test")
    np.testing.assert_allclose(with_even_features(vectors).matrix, [[0.6, 0, 1], [0.8, 0, 0]])


@pytest.mark.real_model
@pytest.mark.parametrize(("name", "expected"), [("wordsim353", 0.5670), ("simlex999", 0.2923)])
def test_glove_scored_as_its_authors_did(name, expected):
    found = word_similarity(with_even_features(load_word_vectors("glove")), word_pairs(name))
    assert found.spearman == pytest.approx(expected, abs=1e-3)
