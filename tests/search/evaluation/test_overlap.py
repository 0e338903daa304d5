"""Agreement of two rankings against a hand-worked example, a series summed term by term, and scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from search.evaluation.overlap import kendall_tau, overlap, rank_biased_overlap

rankings = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8)


def summed(a, b, p):
    """Sum the series term by term to a depth where nothing is left: the definition, not the closed form."""
    shorter, longer = sorted((a, b), key=len)
    s, length = len(shorter), len(longer)
    at_s = len(set(shorter) & set(longer[:s]))
    total, agreement = 0.0, 0.0
    for d in range(1, 400):
        if d <= s:
            agreement = len(set(shorter[:d]) & set(longer[:d])) / d
        elif d <= length:
            agreement = (len(set(shorter) & set(longer[:d])) + (at_s * (d - s) / s if s else 0)) / d
        total += (1 - p) * p ** (d - 1) * agreement
    return total


def test_overlap_counts_shared_documents_among_the_first_k():
    assert overlap(["a", "b", "c", "d"], ["b", "x", "a", "c"], 3) == pytest.approx(2 / 3)


def test_overlap_of_short_rankings_is_not_diluted_by_k():
    assert overlap(["a", "b"], ["b", "a"], 10) == 1.0
    assert overlap(["a"], ["a", "b"], 10) == 0.5


def test_overlap_of_empty_rankings():
    assert overlap([], [], 10) == 1.0
    assert overlap([], ["a"], 10) == 0.0


def test_rank_biased_overlap_of_the_worked_example():
    # Shared among the first 1, 2, 3: 1, 1, 2, so agreement 1, 1/2, 2/3.
    # (1/9) (1 * .9 + 1/2 * .81 + 2/3 * .729) + 2/3 * .729 = .199 + .486
    assert rank_biased_overlap(["a", "b", "c"], ["a", "c", "d"]) == pytest.approx(0.685, abs=1e-12)


def test_rank_biased_overlap_extrapolates_the_shorter_ranking():
    # s = 1, l = 2, X1 = 1, X2 = 1: agreement 1, then (1 + 1 * 1/1) / 2 = 1.
    assert rank_biased_overlap(["a"], ["a", "b"]) == pytest.approx(1.0)
    # X1 = 0, X2 = 1: (1/9) (0 + 1/2 * .81) + 1/2 * .81
    assert rank_biased_overlap(["b"], ["a", "b"]) == pytest.approx(0.45)


@given(rankings, rankings, st.sampled_from([0.5, 0.8, 0.9]))
def test_rank_biased_overlap_is_its_series(a, b, p):
    value = rank_biased_overlap(a, b, p)
    assert value == pytest.approx(rank_biased_overlap(b, a, p))
    assert 0 <= value <= 1
    if a and b:
        assert value == pytest.approx(min(1.0, summed(a, b, p)), abs=1e-9)


@given(rankings)
def test_a_ranking_agrees_wholly_with_itself(a):
    assert rank_biased_overlap(a, a) == pytest.approx(1.0)
    assert overlap(a, a, 5) == 1.0


@pytest.mark.parametrize("p", [0, 1, 1.5, -0.1])
def test_rank_biased_overlap_refuses_a_persistence_outside_its_range(p):
    with pytest.raises(ValueError, match="between 0 and 1"):
        rank_biased_overlap(["a"], ["a"], p)


@given(rankings, rankings)
def test_kendall_tau_is_scipys_over_the_common_documents(a, b):
    common = [document for document in a if document in b]
    if len(common) < 2:
        assert kendall_tau(a, b) is None
    else:
        expected = kendalltau(range(len(common)), [b.index(document) for document in common]).statistic
        assert kendall_tau(a, b) == pytest.approx(expected)
