import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from indexer.static import ridge
from indexer.static.ridge import solve_ridge


def dense_twin(matrix, targets, penalty):
    """Least squares on [A; sqrt(penalty) I], [R; 0]: the same minimum, by another road."""
    columns = matrix.shape[1]
    above = np.vstack([matrix.toarray(), np.sqrt(penalty) * np.eye(columns)]).astype(np.float64)
    right = np.vstack([targets, np.zeros((columns, targets.shape[1]))])
    return np.linalg.lstsq(above, right, rcond=None)[0]


def system(rows, columns, dimensions, seed=0):
    rng = np.random.default_rng(seed)
    matrix = csr_array(random_array((rows, columns), density=0.1, rng=rng, format="csr", dtype=np.float32))
    return matrix, rng.standard_normal((rows, dimensions)).astype(np.float32)


def test_one_row_and_one_column_by_hand():
    # (2 d - 6)^2 + 2 d^2 is least where 8 d - 24 + 4 d = 0
    matrix = csr_array(np.array([[2.0]], np.float32))
    solution = solve_ridge(matrix, np.array([[6.0]], np.float32), 2.0)
    assert solution.coefficients.item() == pytest.approx(2.0)
    assert solution.iterations == 0


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
@pytest.mark.parametrize("direct_limit", [0, 100])
@pytest.mark.parametrize("penalty", [0.01, 0.3, 10.0])
def test_agrees_with_dense_least_squares(shape, direct_limit, penalty):
    matrix, targets = system(*shape, 7)
    found = solve_ridge(matrix, targets, penalty, tolerance=1e-6, direct_limit=direct_limit)
    np.testing.assert_allclose(found.coefficients, dense_twin(matrix, targets, penalty), atol=2e-4)


def test_conjugate_gradients_stop_at_their_tolerance():
    matrix, targets = system(300, 200, 70)
    loose = solve_ridge(matrix, targets, 0.3, tolerance=1e-1, direct_limit=0)
    tight = solve_ridge(matrix, targets, 0.3, tolerance=1e-4, direct_limit=0)
    assert loose.residual <= 1e-1
    assert tight.residual <= 1e-4
    assert 0 < loose.iterations < tight.iterations < 100


def test_steps_that_run_out_are_reported(monkeypatch):
    monkeypatch.setattr(ridge, "MAX_ITERATIONS", 2)
    matrix, targets = system(300, 200, 3)
    found = solve_ridge(matrix, targets, 1e-4, tolerance=1e-7, direct_limit=0)
    assert found.iterations == 2
    assert found.residual > 1e-7
    assert np.isfinite(found.coefficients).all()


@pytest.mark.parametrize("direct_limit", [0, 100])
def test_a_constant_dimension_gives_zeros_and_leaves_the_others_alone(direct_limit):
    matrix, targets = system(50, 30, 5)
    targets[:, 2] = 0.0
    found = solve_ridge(matrix, targets, 0.3, tolerance=1e-6, direct_limit=direct_limit)
    assert not found.coefficients[:, 2].any()
    np.testing.assert_allclose(found.coefficients, dense_twin(matrix, targets, 0.3), atol=2e-4)


def test_words_of_very_different_frequency_need_few_steps():
    # A word in every row beside words in one row each: ill-conditioned unless scaled by its diagonal.
    rows = 2000
    frequent = csr_array(np.ones((rows, 1), np.float32))
    rare = csr_array((np.ones(rows, np.float32), (np.arange(rows), np.arange(rows))), shape=(rows, rows))
    from scipy.sparse import hstack

    matrix = csr_array(hstack([frequent, rare], format="csr"))
    targets = np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32)
    assert solve_ridge(matrix, targets, 0.1, tolerance=1e-5, direct_limit=0).iterations <= 10


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 3, 0)])
def test_nothing_to_fit_gives_zeros(shape):
    rows, columns, dimensions = shape
    matrix = csr_array((rows, columns), dtype=np.float32)
    found = solve_ridge(matrix, np.zeros((rows, dimensions), np.float32), 1.0)
    assert found.coefficients.shape == (columns, dimensions)
    assert not found.coefficients.any()


@pytest.mark.parametrize("penalty", [0.0, -1.0, float("nan")])
def test_a_penalty_of_nothing_is_refused(penalty):
    matrix, targets = system(5, 5, 2)
    with pytest.raises(ValueError, match="above 0"):
        solve_ridge(matrix, targets, penalty)


def test_sizes_that_differ_are_refused():
    matrix, targets = system(5, 5, 2)
    with pytest.raises(ValueError, match="5 rows need as many targets, found 4"):
        solve_ridge(matrix, targets[:4], 1.0)
