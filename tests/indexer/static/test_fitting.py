import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from corpora.progress import Silent
from indexer.static.averaging import TermFrequency
from indexer.static.fitting import RIDGES, FitOptions, design, distil_table, fit_table
from indexer.vectors import normalize


def corpus(passages, words, dimensions, seed=0):
    """Counts, unit teacher vectors that are a weighted average of hidden word vectors, and a noisy prior."""
    rng = np.random.default_rng(seed)
    density = min(1.0, 8 / words)
    counts = csr_array(random_array((passages, words), density=density, rng=rng, format="csr", dtype=np.float32))
    counts.data = rng.integers(1, 4, counts.nnz).astype(np.float32)
    hidden = rng.standard_normal((words, dimensions)).astype(np.float32)
    noise = rng.standard_normal((passages, dimensions)).astype(np.float32)
    teacher = normalize(normalize(counts @ hidden) + 0.02 * noise)
    prior = hidden + rng.standard_normal(hidden.shape).astype(np.float32)
    return counts, teacher, prior


def cosines(counts, fitted, teacher):
    found = normalize(design(counts, fitted.weights, TermFrequency.RAW) @ fitted.table)
    return np.einsum("nd,nd->n", found, teacher)


def test_two_passages_of_one_word_each_by_hand():
    # A = I, P = (1, 0), (-1, 0) once centred; X = (0.6, 0.8), (-0.6, 0.8). s = 1.2 / 2 = 0.6.
    # D = (X - s P) / (1 + ridge) = (0, 0.8) / 2 for both words, W = s P + D.
    counts = csr_array(np.eye(2, dtype=np.float32))
    teacher = np.array([[0.6, 0.8], [-0.6, 0.8]], np.float32)
    prior = np.array([[3.0, 1.0], [-3.0, 1.0]], np.float32)
    fitted = fit_table(counts, teacher, prior=prior, options=FitOptions(ridge=1.0, exponent=1.0))
    np.testing.assert_allclose(fitted.table, [[0.6, 0.4], [-0.6, 0.4]], atol=1e-6)
    np.testing.assert_allclose(fitted.weights, np.log(3), rtol=1e-6)
    np.testing.assert_allclose(fitted.prior_mean, [0.0, 1.0])
    assert fitted.prior_scale == pytest.approx(0.6)
    assert fitted.passages == 2


@pytest.mark.parametrize("with_prior", [True, False])
def test_agrees_with_a_dense_twin(with_prior):
    counts, teacher, prior = corpus(80, 50, 6)
    options = FitOptions(ridge=0.3, exponent=1.5)
    fitted = fit_table(counts, teacher, prior=prior if with_prior else None, options=options)

    dense = counts.toarray().astype(np.float64)
    frequency = np.maximum((dense > 0).sum(axis=0), 1)
    rows = dense * np.log(1 + 80 / frequency) ** 1.5
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows[lengths > 0] / lengths[lengths > 0, None]
    goal = teacher[lengths > 0].astype(np.float64)
    words = prior - prior.mean(axis=0)
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    predicted = rows @ words
    scale = (predicted * goal).sum() / (predicted**2).sum() if with_prior else 0.0
    step = np.linalg.solve(rows.T @ rows + 0.3 * np.eye(50), rows.T @ (goal - scale * predicted))
    np.testing.assert_allclose(fitted.table, scale * words + step, atol=1e-4)


def test_log_term_frequency_by_hand():
    counts = csr_array(np.array([[1.0, 3.0]], np.float32))
    row = design(counts, np.array([2.0, 1.0], np.float32), TermFrequency.LOG).toarray()[0]
    np.testing.assert_allclose(row, np.array([2.0, 1 + np.log(3)]) / np.hypot(2.0, 1 + np.log(3)), rtol=1e-6)


def test_recovers_a_teacher_that_averages_words():
    counts, teacher, prior = corpus(2000, 300, 16)
    fitted = fit_table(counts, teacher, prior=prior)
    assert fitted.ridge in RIDGES
    assert fitted.held_out_cosine > 0.9
    known = np.diff(counts.indptr) > 0
    assert cosines(counts, fitted, teacher)[known].mean() > 0.95
    plain = distil_table(prior, np.ones(300, np.float32))
    assert cosines(counts, plain, teacher).mean() < 0.8


def test_noise_chooses_a_larger_ridge():
    counts, teacher, prior = corpus(1000, 300, 16)
    noise = np.random.default_rng(1).standard_normal(teacher.shape).astype(np.float32)
    noisy = normalize(teacher + noise)
    assert fit_table(counts, noisy, prior=prior).ridge > fit_table(counts, teacher, prior=prior).ridge


def test_the_same_input_gives_the_same_table():
    counts, teacher, prior = corpus(400, 120, 8)
    first = fit_table(counts, teacher, prior=prior)
    second = fit_table(counts, teacher, prior=prior)
    assert np.array_equal(first.table, second.table)


def test_one_passage_is_its_own_teacher():
    counts = csr_array(np.array([[1.0, 2.0, 0.0]], np.float32))
    teacher = np.array([[0.0, 1.0]], np.float32)
    prior = np.eye(3, 2, dtype=np.float32)
    fitted = fit_table(counts, teacher, prior=prior)
    assert np.isfinite(fitted.table).all()
    assert np.isnan(fitted.held_out_cosine)
    assert cosines(counts, fitted, teacher)[0] > 0.9


def test_passages_that_are_all_equal_keep_the_words_as_they_are_alone():
    # Centred, equal vectors are nothing.
    counts = csr_array(np.ones((5, 3), np.float32))
    prior = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    progress = Silent()
    fitted = fit_table(counts, np.zeros((5, 4), np.float32), prior=prior, progress=progress)
    np.testing.assert_allclose(fitted.table, normalize(prior - prior.mean(axis=0)))
    assert fitted.passages == 0
    assert fitted.prior_scale == 1.0
    assert progress.notes == ["the passages' contextual vectors are all alike: words keep the vectors they have alone"]


def test_passages_without_known_words_are_left_out():
    counts, teacher, prior = corpus(60, 30, 4)
    empty = csr_array((3, 30), dtype=np.float32)
    from scipy.sparse import vstack

    more = csr_array(vstack([counts, empty], format="csr"))
    idf_weights = np.linspace(1, 2, 30, dtype=np.float32)
    options = FitOptions(ridge=0.5)
    without = fit_table(counts, teacher, prior=prior, idf_weights=idf_weights, options=options)
    padded = np.vstack([teacher, normalize(np.ones((3, 4)))])
    found = fit_table(more, padded, prior=prior, idf_weights=idf_weights, options=options)
    np.testing.assert_allclose(found.table, without.table, atol=1e-6)


def test_no_passage_with_a_known_word():
    fitted = fit_table(csr_array((4, 2), dtype=np.float32), normalize(np.eye(4, 3)), prior=np.eye(2, 3))
    assert fitted.passages == 0
    assert np.isfinite(fitted.table).all()


def test_no_vocabulary_at_all():
    fitted = fit_table(csr_array((4, 0), dtype=np.float32), normalize(np.eye(4, 3)))
    assert fitted.table.shape == (0, 3)


def test_fewer_passages_than_dimensions_are_reproduced():
    counts, teacher, prior = corpus(20, 200, 64)
    fitted = fit_table(counts, teacher, prior=prior)
    known = np.diff(counts.indptr) > 0
    assert cosines(counts, fitted, teacher)[known].min() > 0.7


def test_a_word_in_every_passage_does_no_harm():
    counts, teacher, prior = corpus(200, 60, 8)
    everywhere = csr_array(np.hstack([counts.toarray(), np.ones((200, 1), np.float32)]))
    fitted = fit_table(everywhere, teacher, prior=np.vstack([prior, prior[:1]]))
    assert fitted.weights.argmin() == 60
    assert fitted.weights[60] == pytest.approx(np.log(2) ** 1.25, rel=1e-5)
    assert cosines(everywhere, fitted, teacher).mean() > 0.9


def test_a_word_that_no_passage_holds_keeps_its_scaled_prior():
    counts, teacher, prior = corpus(100, 40, 8)
    dense = counts.toarray()
    dense[:, 7] = 0
    fitted = fit_table(csr_array(dense), teacher, prior=prior)
    alone = normalize(prior - prior.mean(axis=0))
    np.testing.assert_allclose(fitted.table[7], fitted.prior_scale * alone[7], atol=1e-6)


def test_a_prior_that_points_away_is_dropped():
    counts = csr_array(np.eye(2, dtype=np.float32))
    teacher = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    fitted = fit_table(counts, teacher, prior=-teacher, options=FitOptions(ridge=1.0))
    assert fitted.prior_scale == 0.0
    np.testing.assert_allclose(fitted.table, teacher / 2, atol=1e-6)


def test_a_million_words():
    rng = np.random.default_rng(0)
    words, passages, length = 1_000_000, 3000, 20
    indices = rng.integers(0, words, passages * length).astype(np.int32)
    pointers = np.arange(0, passages * length + 1, length, dtype=np.int32)
    counts = csr_array((np.ones(len(indices), np.float32), indices, pointers), shape=(passages, words))
    teacher = normalize(rng.standard_normal((passages, 4)))
    fitted = fit_table(counts, teacher, options=FitOptions(ridge=0.3))
    assert fitted.table.shape == (words, 4)
    assert 0 < fitted.iterations < 50
    assert cosines(counts, fitted, teacher).min() > 0.9


@pytest.mark.parametrize("spoilt", ["teacher", "prior"])
def test_numbers_that_are_not_finite_are_refused_by_row(spoilt):
    counts, teacher, prior = corpus(20, 10, 4)
    {"teacher": teacher, "prior": prior}[spoilt][3, 1] = np.nan
    with pytest.raises(ValueError, match=f"row 3 of the {spoilt}'s vectors"):
        fit_table(counts, teacher, prior=prior)


def test_sizes_that_differ_are_refused():
    counts, teacher, prior = corpus(20, 10, 4)
    with pytest.raises(ValueError, match="20 passages and 10 words need"):
        fit_table(counts, teacher[:19], prior=prior)
    with pytest.raises(ValueError, match="found"):
        fit_table(counts, teacher, prior=prior[:, :3])


def test_distilled_words_are_centred_and_of_unit_length():
    prior = np.array([[3.0, 1.0], [1.0, 1.0]], np.float32)
    fitted = distil_table(prior, np.array([2.0, 3.0], np.float32))
    np.testing.assert_allclose(fitted.table, [[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(fitted.weights, [2.0, 3.0])
    assert fitted.passages == 0
