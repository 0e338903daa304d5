import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gensim.test.utils import datapath
from hypothesis import given
from hypothesis import strategies as st

from corpora.progress import Silent
from indexer.static.tokenizer import words
from indexer.static.weights import SIF_CONSTANT, WordCounter, count_words

TEXTS = ["the river bank", "The bank, the money", ""]


def test_counts_of_a_small_corpus():
    found = count_words([TEXTS])
    counts = dict(zip(found.words, zip(found.document_frequency, found.collection_frequency, strict=True), strict=True))
    assert counts == {"the": (2, 3), "bank": (2, 2), "river": (1, 1), "money": (1, 1)}
    assert list(found.words)[:2] == ["the", "bank"]
    assert (found.n_texts, found.n_tokens, found.n_dropped) == (3, 7, 0)


def test_weights_of_a_small_corpus():
    found = count_words([TEXTS])
    asked = ["river", "the", "unseen"]
    np.testing.assert_allclose(found.weights(asked), [math.log(4), math.log(2.5), math.log(4)], rtol=1e-6)
    a = SIF_CONSTANT
    np.testing.assert_allclose(
        found.weights(asked, "sif"), [a / (a + 1 / 7), a / (a + 3 / 7), a / (a + 1 / 7)], rtol=1e-6
    )
    assert found.weights(asked, "uniform").tolist() == [1, 1, 1]
    assert found.unseen_weight() == pytest.approx(math.log(4))


def test_a_word_in_every_text_still_weighs_something():
    found = count_words([["a b", "a c", "a"]])
    assert found.weights(["a"]) == pytest.approx(math.log(2))


@given(st.lists(st.lists(st.text(st.sampled_from("abc é'"), max_size=12), max_size=4), max_size=5))
def test_counts_equal_a_plain_loop_however_the_texts_are_blocked(blocks):
    found = count_words(blocks)
    texts = [text for block in blocks for text in block]
    occurrences = Counter(word for text in texts for word in words(text))
    in_texts = Counter(word for text in texts for word in set(words(text)))
    assert dict(zip(found.words, found.collection_frequency.tolist(), strict=True)) == occurrences
    assert dict(zip(found.words, found.document_frequency.tolist(), strict=True)) == in_texts
    assert found.n_tokens == occurrences.total()


def test_counts_of_real_news_equal_a_plain_loop():
    texts = Path(datapath("lee_background.cor")).read_text(encoding="latin-1").splitlines()
    found = count_words([texts[:100], texts[100:]])
    occurrences = Counter(word for text in texts for word in words(text))
    assert dict(zip(found.words, found.collection_frequency.tolist(), strict=True)) == occurrences
    assert found.collection_frequency.tolist() == sorted(occurrences.values(), reverse=True)


def test_the_cap_keeps_the_most_frequent_words_and_is_noted():
    silent = Silent()
    found = count_words([["a a a b b c"], ["a b d"]], max_words=2, progress=silent)
    assert list(found.words) == ["a", "b"]
    assert found.n_dropped == 2
    assert found.n_tokens == 9
    assert silent.notes == ["2 rare words left out of the static vocabulary, which keeps the 2 most frequent"]


def test_memory_is_bounded_by_forgetting_rare_words():
    counter = WordCounter(max_words=10)
    for number in range(100):
        counter.add([f"often w{number}a w{number}b"])
    found = counter.statistics()
    assert found.words[0] == "often"
    assert found.collection_frequency[0] == 100
    assert len(found.words) == 10
    assert found.n_dropped == 201 - 10


def test_no_texts_give_an_empty_vocabulary():
    found = count_words([])
    assert len(found.words) == 0
    assert found.n_texts == 0
    assert found.weights(["a"]).tolist() == [0.0]
