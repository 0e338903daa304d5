import numpy as np
import pytest
from gensim.test.utils import datapath

from indexer.static.corpus_table import for_corpus
from indexer.static.weights import count_words
from indexer.static.word_vectors import WordVectors, load_word_vectors


def table(*words):
    return WordVectors(list(words), np.eye(len(words), dtype=np.float32), "test")


def row(encoder, word):
    return encoder.table[encoder.vocabulary.id_of(word)].tolist()


def test_corpus_words_and_the_frequent_words_of_the_table_are_kept():
    encoder = for_corpus(table("the", "of", "river", "rare", "bank"), count_words([["the bank"]]), frequent=3)
    assert set(encoder.vocabulary) == {"the", "of", "river", "bank"}


def test_a_word_written_in_the_tokenizers_form_wins_over_a_more_frequent_one():
    encoder = for_corpus(table("Bank", "US", "us", "bank", "u.s.", "New_York"), count_words([["bank us u.s."]]))
    assert row(encoder, "bank") == [0, 0, 0, 1, 0, 0]
    assert row(encoder, "us") == [0, 0, 1, 0, 0, 0]
    assert row(encoder, "u.s") == [0, 0, 0, 0, 1, 0]
    assert "new_york" not in encoder.vocabulary


def test_a_capitalised_word_serves_where_no_plain_one_is():
    encoder = for_corpus(table("PARIS", "Paris"), count_words([["paris"]]))
    assert row(encoder, "paris") == [1, 0]


def test_contractions_are_made_of_their_halves_for_texts_and_queries():
    encoder = for_corpus(table("do", "n't", "ca", "zz"), count_words([["I don't"]]))
    assert row(encoder, "don't") == [0.5, 0.5, 0, 0]
    assert row(encoder, "can't") == [0, 0.5, 0.5, 0]
    assert encoder.coverage("don’t can't won't") == (("don't", "can't"), ("won't",))


def test_an_accented_word_that_the_table_lacks_takes_the_plain_ones_vector():
    encoder = for_corpus(table("cafe", "naive", "naïve"), count_words([["café naïve über"]]))
    assert row(encoder, "café") == [1, 0, 0]
    assert row(encoder, "naïve") == [0, 0, 1]
    assert encoder.coverage("café über").unknown == ("über",)


def test_weights_come_from_the_corpus():
    statistics = count_words([["the bank", "the river"]])
    encoder = for_corpus(table("the", "bank", "unseen"), statistics)
    assert encoder.weight("the") < encoder.weight("bank") == encoder.weight("unseen")


def test_a_corpus_without_a_known_word_still_answers():
    encoder = for_corpus(table("a", "b"), count_words([["zxqv"]]), frequent=0)
    assert not encoder.encode(["zxqv"]).any()
    assert encoder.encode(["zxqv"]).shape == (1, 2)


def test_fasttext_composes_words_of_queries(tmp_path):
    vectors = load_word_vectors(datapath("lee_fasttext_new.bin"))
    encoder = for_corpus(vectors, count_words([["the riverbankish"]]))
    assert encoder.coverage("riverbankish zxqvblorft").unknown == ()
    expected = vectors.composition.vector("zxqvblorft")
    np.testing.assert_allclose(encoder.encode(["zxqvblorft"])[0], expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.real_model
def test_glove_knows_the_hard_words():
    encoder = for_corpus(load_word_vectors("glove"), count_words([["a river bank"]]))
    found = encoder.coverage("Bank bank. BANK u.s.-based don't naïve Straße zxqv")
    assert found.unknown == ("zxqv",)
    assert found.known == ("bank", "bank", "bank", "u.s", "based", "don't", "naïve", "straße")
