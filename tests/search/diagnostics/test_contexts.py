import random

import numpy as np
import pytest

from indexer.static.tokenizer import words as tokenize
from search.diagnostics import contexts
from search.diagnostics.contexts import context_hashes, survey_contexts
from search.errors import DiagnosisError


def by_hand(texts, window):
    """Count with sets of tuples."""
    seen = {}
    for text in texts:
        words = tokenize(text)
        for place, word in enumerate(words):
            left = tuple(words[max(0, place - window) : place])
            right = tuple(words[place + 1 : place + 1 + window])
            seen.setdefault(word, set()).add((left, right))
    return {word: len(each) for word, each in seen.items()}


def test_contexts_by_hand():
    found = survey_contexts(["a bank", "the bank", "a bank of", "", "a bank"], windows=(0, 1))
    alone, near = found.counts
    assert (found.texts, found.tokens, found.words) == (5, 9, 4)
    assert alone.contexts == 4
    # bank: (a _ end), (the _ end), (a _ of); a: (start _ bank); the and of: one each.
    assert near.contexts == 6
    assert near.richest[0] == ("bank", 4, 3)
    assert near.single == 0.75
    assert near.table_bytes(384) == 6 * 384 * 4


@pytest.mark.parametrize("buffer", [1, 50, 1 << 20])
def test_streaming_counts_equal_sets_of_tuples(monkeypatch, buffer):
    monkeypatch.setattr(contexts, "_BUFFER", buffer)
    chooser = random.Random(4)
    texts = [" ".join(chooser.choices("abcdefg", k=chooser.randint(0, 30))) for _ in range(120)]
    found = survey_contexts(iter(texts), windows=(1, 3), examples=7)
    for count in found.counts:
        expected = by_hand(texts, count.window)
        assert count.contexts == sum(expected.values())
        assert {each.word: each.contexts for each in count.richest} == expected


def test_growth_and_what_one_half_would_miss():
    same = ["the river bank"] * 2000
    assert survey_contexts(same).counts[-1].new_at_the_end == 0.0
    fresh = [f"word{number} bank number{number}" for number in range(2000)]
    count = survey_contexts(fresh).counts[1]
    assert count.new_at_the_end == 1.0
    assert count.growth[-1] == (6000, 6000)
    assert [mark.tokens for mark in count.growth[:-1]] == pytest.approx([1024, 2048, 4096], abs=3)


def test_order_and_ends_of_a_text_are_part_of_a_context():
    ids = np.array([1, 2, 1, 2, 1], dtype=np.int32)
    hashes = context_hashes(ids, 1)
    assert hashes[1] == hashes[3]
    assert len(set(hashes.tolist())) == 4
    assert len(set(context_hashes(ids, 0).tolist())) == 2


def test_costs_side_by_side():
    found = survey_contexts(["a bank", "the bank"], windows=(1,))
    costs = found.costs(static_dimension=50, dimension=384, model_bytes=90, forward_ms=1.5)
    assert costs.static_bytes == 3 * 50 * 4
    assert costs.fitted_bytes == 3 * 384 * 4
    assert costs.contextual_bytes == ((1, 4 * 384 * 4),)


def test_nothing_to_count():
    found = survey_contexts([])
    assert (found.tokens, found.counts[0].contexts, found.counts[0].single) == (0, 0, 0.0)
    with pytest.raises(DiagnosisError, match="from 0"):
        survey_contexts(["a"], windows=(-1,))
