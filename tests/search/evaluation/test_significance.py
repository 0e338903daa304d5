"""p values against all assignments of signs, intervals against scipy and by how often they hold the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from search.evaluation.significance import (
    Outcomes,
    bootstrap_intervals,
    enough_queries,
    exact_p,
    holm,
    outcomes,
    randomisation_p,
)


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def test_exact_p_of_the_worked_example():
    # Signs of (3, 1, 2): a sum of 6 or -6 in 2 of 8 assignments.
    assert exact_p(column(3, 1, 2)) == pytest.approx([2 / 8])
    # (3, 1, -2), sum 2: of |+-3 +-1 +-2| only 3 - 1 - 2 and its mirror are below 2.
    assert exact_p(column(3, 1, -2)) == pytest.approx([6 / 8])


def test_exact_p_is_scipys_permutation_test():
    values = np.random.default_rng(3).normal(0.3, 1, size=10)
    expected = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    ).pvalue
    assert exact_p(values[:, None])[0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_randomisation_agrees_with_exact_enumeration(seed):
    rng = np.random.default_rng(seed)
    # Multiples of .1 make equal sums that rounding tells apart.
    differences = np.round(rng.normal(0.15, 0.4, size=(10, 6)), 1)
    exact, estimate = exact_p(differences), randomisation_p(differences, rng, permutations=20_000)
    error = np.sqrt(exact * (1 - exact) / 20_000)
    assert np.all(np.abs(estimate - exact) <= 4.5 * error + 1e-4)


def test_randomisation_p_is_never_0_and_is_1_for_no_difference():
    differences = np.column_stack((np.ones(60), np.zeros(60)))
    p = randomisation_p(differences, np.random.default_rng(0), permutations=999)
    assert p[0] == 1 / 1000
    assert p[1] == 1.0


def test_the_same_seed_gives_the_same_p_and_intervals():
    values = np.random.default_rng(1).normal(size=(40, 3))
    assert np.array_equal(
        randomisation_p(values, np.random.default_rng(7)), randomisation_p(values, np.random.default_rng(7))
    )
    assert np.array_equal(
        bootstrap_intervals(values, np.random.default_rng(7)),
        bootstrap_intervals(values, np.random.default_rng(7)),
    )


def test_randomisation_rejects_a_true_hypothesis_as_often_as_it_says():
    rng = np.random.default_rng(11)
    p = randomisation_p(rng.normal(size=(30, 2_000)), rng, permutations=2_000)
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.016)


def test_holm_of_the_worked_example():
    # .01 * 4, .03 * 3, max(.09, .04 * 2), max(.09, .05)
    assert holm(np.array([0.04, 0.01, 0.05, 0.03])) == pytest.approx([0.09, 0.04, 0.09, 0.09])


@given(st.lists(st.floats(0.001, 1), max_size=8))
def test_holm_lies_between_no_correction_and_bonferronis(values):
    p = np.array(values)
    corrected = holm(p)
    assert np.all(corrected >= p)
    assert np.all(corrected <= np.minimum(1, p * max(1, len(p))) + 1e-12)
    rejected = [
        bool(np.all(np.sort(p)[: rank + 1] <= 0.05 / np.arange(len(p), len(p) - rank - 1, -1)))
        for rank in np.argsort(np.argsort(p, kind="stable"), kind="stable")
    ]
    assert (corrected <= 0.05).tolist() == rejected


def test_intervals_are_scipys():
    values = np.random.default_rng(5).beta(0.5, 1.5, size=(80, 3))
    ours = bootstrap_intervals(values, np.random.default_rng(1), resamples=20_000)
    for index in range(3):
        theirs = stats.bootstrap(
            (values[:, index],),
            np.mean,
            method="BCa",
            n_resamples=20_000,
            vectorized=True,
            batch=1_000,
            rng=np.random.default_rng(2),
        ).confidence_interval
        assert ours[index] == pytest.approx([theirs.low, theirs.high], abs=0.003)


def test_intervals_hold_the_truth_as_often_as_they_say():
    # Per-query scores are skewed, and many are 0: beta(.4, .8), mean 1/3, a quarter of them cut to 0.
    rng = np.random.default_rng(9)
    scores = rng.beta(0.4, 0.8, size=(50, 1_000)) * (rng.random((50, 1_000)) > 0.25)
    intervals = bootstrap_intervals(scores, rng, resamples=1_000)
    held = np.mean((intervals[:, 0] <= 0.25) & (intervals[:, 1] >= 0.25))
    assert held == pytest.approx(0.94, abs=0.025)


@pytest.mark.parametrize("values", [column(0.5), column(0.3, 0.3, 0.3), column(0, 0)])
def test_equal_values_give_an_interval_without_width(values):
    low, high = bootstrap_intervals(values, np.random.default_rng(0), resamples=200)[0]
    assert low == high == pytest.approx(values[0, 0])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=12))
def test_an_interval_lies_within_the_values(values):
    low, high = bootstrap_intervals(column(*values), np.random.default_rng(0), resamples=300)[0]
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12


def test_outcomes_count_wins_ties_and_losses():
    assert outcomes(np.array([0.2, -0.1, 0.0, 0.1 + 0.2 - 0.3, 0.5])) == Outcomes(2, 2, 1)


def test_thirty_queries_are_enough():
    assert not enough_queries(29)
    assert enough_queries(30)
