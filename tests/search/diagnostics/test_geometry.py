"""Geometry: hand-worked examples, the limit cases of papers, and what whitening and renormalising do."""

import numpy as np
import pytest

from indexer.vectors import normalize
from indexer.whitening import Whitening, WhiteningSpec
from search.diagnostics.geometry import (
    covariance_spectrum,
    effective_rank,
    geometry,
    isoscore,
    mean_cosine,
    occurrences,
    skewness,
    variance_share,
)


def published_isoscore(spectrum):
    """IsoScore step by step as its paper gives it."""
    d = len(spectrum)
    scaled = np.sqrt(d) * spectrum / np.linalg.norm(spectrum)
    defect = np.linalg.norm(scaled - 1.0) / np.sqrt(2.0 * (d - np.sqrt(d)))
    phi = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return (d * phi - 1.0) / (d - 1.0)


def test_isoscore_is_0_for_one_direction_and_1_for_all_alike():
    assert isoscore(np.array([5.0, 0.0, 0.0, 0.0])) == 0.0
    assert isoscore(np.full(4, 0.01)) == 1.0


@pytest.mark.parametrize("k", range(1, 10))
def test_isoscore_of_k_of_d_directions_is_k_minus_1_over_d_minus_1(k):
    assert isoscore(np.array([2.0] * k + [0.0] * (9 - k))) == pytest.approx((k - 1) / 8)


def test_isoscore_by_hand():
    # l = (3, 1): 16 / 10 = 1.6 directions are used, (1.6 - 1) / (2 - 1).
    assert isoscore(np.array([3.0, 1.0])) == pytest.approx(0.6)


def test_isoscore_is_the_papers_and_knows_no_scale(rng):
    for spectrum in rng.gamma(0.5, size=(20, 30)):
        assert isoscore(spectrum) == pytest.approx(published_isoscore(spectrum), abs=1e-12)
        assert isoscore(spectrum * 1e-200) == pytest.approx(isoscore(spectrum), abs=1e-12)


def test_isoscore_without_variance_or_with_one_dimension_is_0():
    assert isoscore(np.zeros(5)) == isoscore(np.array([3.0])) == isoscore(np.zeros(0)) == 0.0


def test_effective_rank_is_of_singular_values():
    # Singular values 2 and 1, shares 2/3 and 1/3: exp(ln 3 - 2/3 ln 2) = 3 / 2^(2/3).
    assert effective_rank(np.array([4.0, 1.0, 0.0])) == pytest.approx(3 / 2 ** (2 / 3))
    assert effective_rank(np.full(7, 0.1)) == pytest.approx(7.0)
    assert effective_rank(np.array([1.0, 0.0])) == pytest.approx(1.0)
    assert effective_rank(np.zeros(3)) == 0.0


def test_shares_of_variance_by_hand():
    spectrum = np.array([5.0, 3.0, 1.0, 1.0])
    assert [variance_share(spectrum, k) for k in (1, 3, 10)] == [0.5, 0.9, 1.0]
    assert variance_share(np.zeros(3), 1) == 0.0


def test_spectrum_is_numpys(rng):
    x = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    np.testing.assert_allclose(covariance_spectrum(x), np.linalg.eigvalsh(np.cov(x.T))[::-1], atol=1e-10)


def test_skewness_is_scipys(rng):
    from scipy.stats import skew

    values = rng.gamma(2.0, size=200)
    assert skewness(values) == pytest.approx(skew(values))
    assert skewness(np.ones(5)) == 0.0


def test_occurrences_by_hand():
    # On a line of angles 0, 10, 20 and 90 degrees, with one neighbour each.
    angles = np.deg2rad([0.0, 10.0, 21.0, 90.0])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert occurrences(units, k=1).tolist() == [1, 2, 1, 0]
    assert occurrences(units).tolist() == [3, 3, 3, 3]


def test_a_hub_skews(rng):
    around = normalize(rng.normal(size=(300, 2000)))
    middle = normalize(around.mean(axis=0, keepdims=True))
    with_hub = geometry(np.vstack([around, middle]), rng)
    assert with_hub.hubness > geometry(around, rng).hubness + 3.0


def test_everything_by_hand(rng):
    found = geometry(np.array([[2, 0], [1, 0], [0, 3], [0, 0], [1, 0]], np.float32), rng)
    assert (found.count, found.sampled, found.dimension, found.zero_rows, found.duplicates) == (4, 4, 2, 1, 1)
    assert found.mean_cosine == pytest.approx(0.5)  # three pairs alike, three at right angles
    assert found.nearest_cosine == pytest.approx(0.75)
    assert found.norm_mean == pytest.approx(1.75)
    assert found.norm_spread == pytest.approx(np.std([2, 1, 3, 1]) / 1.75)
    assert found.first_1 == pytest.approx(1.0)
    assert found.isoscore == pytest.approx(0.0)
    assert sum(found.histogram.counts) == 6
    assert found.background.percentile(0.9) > 50.0
    assert "4 vectors in 2 dimensions" in found.notes[0]
    assert found.to_json()["variance_share"]["1"] == pytest.approx(1.0)


@pytest.mark.parametrize("count", [0, 1])
def test_no_text_and_one_text_have_no_shape_and_no_error(rng, count):
    found = geometry(np.ones((count, 4), np.float32), rng)
    assert found.mean_cosine == 0.0
    assert found.nearest_cosine is None
    assert found.background is None
    assert "at least two" in found.notes[0]


def test_a_sample_stands_for_the_whole(rng):
    x = rng.normal(size=(5000, 20)).astype(np.float32) + 1.0
    whole, part = geometry(x, rng, sample=5000), geometry(x, rng, sample=1000)
    assert part.sampled == 1000
    assert part.count == 5000
    assert part.isoscore == pytest.approx(whole.isoscore, abs=0.02)
    assert part.mean_cosine == pytest.approx(whole.mean_cosine, abs=0.01)


@pytest.mark.parametrize("text", ["0", "0.01"])
def test_strong_whitening_makes_a_space_isotropic_until_it_is_renormalised(rng, text):
    # 3 d vectors of very unlike variances, far from the origin.
    x = normalize(rng.normal(size=(300, 100)) * np.geomspace(1.0, 0.1, 100) + 0.5)
    before = geometry(x, rng)
    assert before.mean_cosine > 0.5
    assert before.isoscore < 0.5
    whitened = Whitening.fit(x, WhiteningSpec.parse(text)).transform(x)
    after = geometry(whitened, rng, unit=False)
    assert abs(after.mean_cosine) < 0.01
    assert after.isoscore > 0.9
    renormalised = geometry(normalize(whitened), rng)
    # Scaling to unit length moves the mean a little off the origin and unevens the spectrum a little.
    assert abs(renormalised.mean_cosine) < 0.01
    assert 0.9 < renormalised.isoscore <= after.isoscore


def test_mean_cosine_of_unrelated_and_of_shifted_vectors(rng):
    x = rng.normal(size=(2000, 64)).astype(np.float32)
    assert abs(mean_cosine(x, rng)) < 0.002
    assert mean_cosine(x + 1.0, rng) == pytest.approx(0.5, abs=0.01)
