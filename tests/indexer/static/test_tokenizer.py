import itertools
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.static.tokenizer import blocks, spans, token_ids, words
from indexer.static.vocabulary import Vocabulary, span_hashes, word_hash

tricky = st.text(st.sampled_from(list("ab sS'’.-9_\0éİΣσς字かß\u0301\u00ad\ufe0f🤷\u200b\u00b4ﬁⅧ")), max_size=30)
anything = st.text(st.characters(), max_size=30)  # lone surrogates too


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bank", ["bank"]),
        ("bank.", ["bank"]),
        ("BANK", ["bank"]),
        ("u.s.-based", ["u.s", "based"]),
        ("U.S.", ["u.s"]),
        ("e.g. this", ["e.g", "this"]),
        ("example.com", ["example", "com"]),
        ("don't", ["don't"]),
        ("don’t", ["don't"]),
        ("'quoted'", ["quoted"]),
        ("the bank's", ["the", "bank"]),
        ("the banks'", ["the", "banks"]),
        ("rock'n'roll", ["rock'n'roll"]),
        ("naïve", ["naïve"]),
        ("nai\u0308ve", ["naïve"]),
        ("Straße", ["straße"]),
        ("İstanbul", ["istanbul"]),
        ("ΟΔΟΣ", ["οδος"]),
        ("3.5 percent in 1999.", ["3", "5", "percent", "in", "1999"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("snake_case", ["snake", "case"]),
        ("com\u00adputer", ["computer"]),
        ("ﬁeld", ["field"]),
        ("हिन्दी", ["हिन्दी"]),
        ("机器学习 AI", ["机", "器", "学", "习", "ai"]),
        ("", []),
        ("   ", []),
        ("!!!", []),
        ("🤷", []),
        ("❤️ 1️⃣", ["1"]),
        ("\ud800x", ["x"]),
        ("a\0b", ["a", "b"]),
        ("a", ["a"]),
        ("'s", ["s"]),
        ("´hello", ["hello"]),
    ],
)
def test_words_of_hard_cases(text, expected):
    assert words(text) == expected


def bulk(texts):
    found = spans(texts)
    everything = [found.word(number) for number in range(len(found.starts))]
    return [everything[a:b] for a, b in itertools.pairwise(found.offsets)]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(tricky, anything), max_size=6))
def test_bulk_and_plain_words_agree(texts):
    assert bulk(texts) == [words(text) for text in texts]


def test_bulk_and_plain_words_agree_on_every_character():
    texts = [
        "".join(f"x{chr(code)}y{chr(code)} " for code in range(start, start + 256))
        for start in range(0, sys.maxunicode + 1, 256)
        if start < 0x3400 or 0xA000 <= start < 0xAC00 or 0xD700 <= start < 0x20100 or start >= 0xE0000
        if start < 0xF0000  # private planes: nothing new
    ]
    assert bulk(texts) == [words(text) for text in texts]


def test_no_word_holds_a_separator_or_capital_letter():
    for code in range(0x3000):
        for word in words(f"a{chr(code)}b"):
            assert not any(unicodedata.category(c)[0] in "ZPSC" for c in word if c not in "'."), hex(code)
            assert word == word.lower()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(tricky, anything), max_size=5))
def test_bulk_and_plain_hashes_agree(texts):
    found = spans(texts)
    expected = [word_hash(word) for text in texts for word in words(text)]
    assert span_hashes(found).tolist() == expected


def test_token_ids_number_the_words_and_mark_the_unknown():
    vocabulary = Vocabulary.of(["river", "bank", "of"])
    found = token_ids(["The bank of the River", "", "zxqv"], vocabulary)
    assert found.ids.tolist() == [-1, 1, 2, -1, 0, -1]
    assert found.offsets.tolist() == [0, 5, 5, 6]


def test_token_ids_do_not_depend_on_blocks():
    vocabulary = Vocabulary.of([f"w{number}" for number in range(500)])
    texts = [f"w{number} x w{number // 2}'s " * 200 for number in range(700)]
    assert len(blocks(texts)) > 1
    found = token_ids(texts, vocabulary)
    expected = [vocabulary.id_of(word) for text in texts for word in words(text)]
    assert found.ids.tolist() == expected
    assert found.offsets[-1] == len(expected)


def test_no_texts_give_no_tokens():
    found = token_ids([], Vocabulary.of(["a"]))
    assert found.ids.tolist() == []
    assert found.offsets.tolist() == [0]
