"""Percentiles of scores among random pairs."""

import numpy as np
import pytest

from indexer.cosine_background import LEVELS, CosineBackground, random_cosines


def test_a_score_is_placed_between_quantiles():
    background = CosineBackground.of(np.linspace(0.0, 1.0, 1001))
    assert background.percentile(0.5) == pytest.approx(50.0)
    assert background.percentile(0.925) == pytest.approx(92.5)
    assert background.percentile(-0.3) == 0.0
    assert background.percentile(1.0) == 100.0


def test_a_score_that_all_pairs_have_is_in_the_middle():
    assert CosineBackground.of([0.4, 0.4, 0.4]).percentile(0.4) == 50.0


def test_it_survives_json_and_rubbish_is_no_background():
    background = CosineBackground.of([0.1, 0.2, 0.9])
    assert CosineBackground.from_json(background.to_json()).percentile(0.2) == pytest.approx(50.0, abs=0.01)
    for rubbish in (None, [], [1.0, 0.0], [*range(len(LEVELS))][::-1]):
        assert CosineBackground.from_json(rubbish) is None
    assert CosineBackground.of([]) is None


def test_few_vectors_give_every_pair_once(rng):
    x = np.array([[1, 0], [0, 2], [0, 0], [3, 3]], np.float32)
    np.testing.assert_allclose(sorted(random_cosines(x, rng)), [0.0, 0.5**0.5, 0.5**0.5], atol=1e-6)
    assert len(random_cosines(x[:1], rng)) == 0


def test_many_vectors_give_the_mean_of_all_pairs_without_a_row_meeting_itself(rng):
    x = rng.normal(size=(400, 8)).astype(np.float32) + 0.5
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    exact = (units @ units.T)[np.triu_indices(400, 1)].mean()
    found = random_cosines(x, rng, pairs=50_000)
    assert len(found) == 50_000
    assert found.mean() == pytest.approx(exact, abs=0.01)
    assert found.max() < 0.9999
