"""Whitening against hand-worked numbers, scikit-learn and FAISS, and on inputs that break it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import DamagedIndexError, FormatVersionError, ModelError, SpecError
from indexer.vectors import normalize
from indexer.whitening import VectorStatistics, Whitening, WhiteningMode, WhiteningSpec
from indexer.whitening_strength import GeneralSpace, choose, general_texts


def spec(text):
    return WhiteningSpec.parse(text)


@pytest.fixture
def texts(rng):
    """2,000 vectors of 160 dimensions: unlike variances, correlated, far from the origin, of unit length."""
    mixing = np.linalg.qr(rng.normal(size=(160, 160)))[0] * np.geomspace(1.0, 0.05, 160)[:, None]
    return normalize(rng.normal(size=(2000, 160)) @ mixing + 0.3)


# --- the notation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mode", "rank", "shrinkage"),
    [
        ("auto", WhiteningMode.AUTO, None, None),
        (" NONE ", WhiteningMode.NONE, None, None),
        ("128", WhiteningMode.RANK, 128, 0.0),
        ("1", WhiteningMode.RANK, 1, 0.0),
        ("1.0", WhiteningMode.SHRINKAGE, None, 1.0),
        ("0", WhiteningMode.SHRINKAGE, None, 0.0),
        ("0.1", WhiteningMode.SHRINKAGE, None, 0.1),
        ("128/0.1", WhiteningMode.RANK, 128, 0.1),
    ],
)
def test_an_integer_is_a_rank_and_a_share_is_a_shrinkage(text, mode, rank, shrinkage):
    assert spec(text) == WhiteningSpec(mode, rank, shrinkage)
    assert spec(spec(text).notation()) == spec(text)


@pytest.mark.parametrize("text", ["", "strong", "-1", "1.5", "nan", "inf", "0/0.1", "128/", "/0.1", "128/2", "1/2/3"])
def test_nonsense_is_refused_with_what_is_possible(text):
    with pytest.raises(SpecError, match="none of: auto, none, a rank"):
        spec(text)


@given(st.integers(1, 4096), st.floats(0.0, 1.0))
def test_every_rank_and_shrinkage_survives_its_notation(rank, shrinkage):
    both = WhiteningSpec(WhiteningMode.RANK, rank, shrinkage)
    assert WhiteningSpec.parse(both.notation()) == both


# --- the formula -------------------------------------------------------------------------------------------


def test_hand_worked_in_two_dimensions():
    # Mean (1, 0); covariance diag(8/3, 2/3), of mean 5/3; e = 1/2: l' = (13/6, 7/6).
    x = np.array([[3, 0], [-1, 0], [1, 1], [1, -1]], np.float32)
    whitening = Whitening.fit(x, spec("0.5"), share=1.0)
    assert whitening.notes == ()
    np.testing.assert_allclose(whitening.shrunk, [13 / 6, 7 / 6])
    expected = [[2 / np.sqrt(13 / 6), 0], [-2 / np.sqrt(13 / 6), 0], [0, 1 / np.sqrt(7 / 6)], [0, -1 / np.sqrt(7 / 6)]]
    np.testing.assert_allclose(whitening.transform(x), expected, atol=1e-6)


@pytest.mark.parametrize("text", ["0", "0.01", "0.3", "1.0", "100", "100/0.2", "auto"])
def test_mean_and_covariance_are_as_predicted(texts, text):
    whitening = Whitening.fit(texts, spec(text))
    found = whitening.transform(texts).astype(np.float64)
    np.testing.assert_allclose(found.mean(axis=0), whitening.predicted_mean(), atol=1e-4)
    np.testing.assert_allclose(np.cov(found.T), whitening.predicted_covariance(), atol=1e-4)
    if text != "auto":
        np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-4)
    if text == "0":
        np.testing.assert_allclose(np.cov(found.T), np.eye(160), atol=1e-4)


def test_rank_128_without_shrinkage_is_scikit_learns_whitened_pca(texts):
    from sklearn.decomposition import PCA

    expected = PCA(128, whiten=True, svd_solver="full").fit_transform(texts.astype(np.float64))
    found = Whitening.fit(texts, spec("128")).transform(texts)
    signs = np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=2e-4)


def test_rank_128_without_shrinkage_is_faiss_pcaw_up_to_sign_and_scale(texts):
    import faiss

    pca = faiss.PCAMatrix(160, 128, -0.5)
    pca.train(texts)
    expected = pca.apply(texts)
    found = Whitening.fit(texts, spec("128")).transform(texts)
    scales = (expected * found).sum(axis=0) / (found * found).sum(axis=0)
    assert np.abs(scales).std() < 5e-3 * np.abs(scales).mean()
    assert np.abs(expected - found * scales).max() < 5e-3 * np.abs(expected).max()


# --- statistics --------------------------------------------------------------------------------------------


def test_blocks_merge_to_the_statistics_of_the_whole(texts):
    parts = [texts[:1], texts[1:700], texts[700:700], texts[700:]]
    merged, whole = VectorStatistics.gather(iter(parts)), VectorStatistics.of(texts)
    assert merged.count == whole.count == 2000
    np.testing.assert_allclose(merged.covariance, np.cov(texts.astype(np.float64).T), atol=1e-12)
    np.testing.assert_allclose(merged.mean, texts.mean(axis=0, dtype=np.float64), atol=1e-12)


def test_a_far_mean_does_not_swallow_the_variance(rng):
    small = rng.normal(size=(500, 3))
    far = VectorStatistics.gather([small[:200] + 1e6, small[200:] + 1e6])
    np.testing.assert_allclose(far.covariance, np.cov(small.T), rtol=1e-6, atol=1e-8)


def test_mean_cosine_is_exact_over_all_pairs(texts):
    some = 3.0 * texts[:50]
    cosines = normalize(some).astype(np.float64) @ normalize(some).T
    assert VectorStatistics.of(some).mean_cosine == pytest.approx(cosines[np.triu_indices(50, 1)].mean(), abs=1e-6)


def test_rows_of_zeros_are_left_out_and_stay_zeros(texts):
    with_gaps = np.vstack([texts, np.zeros((300, 160), np.float32)])
    whitening = Whitening.fit(with_gaps, spec("0.1"))
    assert whitening.count == 2000
    assert whitening.fingerprint == Whitening.fit(texts, spec("0.1")).fingerprint
    assert not whitening.transform(with_gaps)[2000:].any()
    assert not normalize(whitening.transform(np.zeros((1, 160), np.float32))).any()


def test_numbers_that_are_none_are_refused_by_row(texts):
    broken = texts.copy()
    broken[7, 3] = np.nan
    with pytest.raises(ModelError, match="row 7 of 2000"):
        Whitening.fit(broken, spec("auto"))
    with pytest.raises(ModelError, match="row 7"):
        Whitening.fit(texts, spec("auto")).transform(broken)
    with pytest.raises(ModelError, match="no vectors"):
        Whitening.fit([], spec("auto"))


# --- few vectors, null directions --------------------------------------------------------------------------


def test_a_null_direction_is_left_out_where_it_would_be_blown_up(texts):
    flat = texts.copy()
    flat[:, 5] = 0.25
    whitening = Whitening.fit(flat, spec("0"))
    assert whitening.dimension == 159
    assert "1 of 160 directions" in whitening.notes[0]
    noisy = flat.copy()
    noisy[:, 5] += 1e-6
    np.testing.assert_allclose(whitening.transform(noisy), whitening.transform(flat), atol=1e-3)
    assert Whitening.fit(flat, spec("0.02")).dimension == 160


@pytest.mark.parametrize("text", ["auto", "0", "0.1", "128"])
def test_fifty_documents_in_160_dimensions_keep_their_neighbours(texts, text):
    few = texts[:50]
    whitening = Whitening.fit(few, spec(text))
    found = normalize(whitening.transform(few))
    cosines = (found @ found.T)[np.triu_indices(50, 1)]
    assert cosines.std() > 0.02  # a full whitening would give every pair -1/49
    query = normalize(few + 0.01)
    assert (normalize(whitening.transform(query)) @ found.T).argmax(axis=1).tolist() == list(range(50))
    assert text == "auto" or "50 vectors in 160 dimensions" in whitening.notes[0]


@pytest.mark.parametrize("text", ["auto", "0", "128"])
@pytest.mark.parametrize(("count", "why"), [(0, "0 vectors"), (1, "1 vectors"), (100, "all vectors are the same")])
def test_nothing_to_fit_on_leaves_vectors_as_they_are(texts, text, count, why):
    same = np.repeat(texts[:1], count, axis=0)
    whitening = Whitening.fit(same, spec(text))
    assert whitening.is_identity
    assert why in whitening.notes[0]
    np.testing.assert_array_equal(whitening.transform(texts[:5]), texts[:5])


def test_none_changes_nothing_and_says_nothing(texts):
    whitening = Whitening.fit(texts, spec("none"))
    assert whitening.notes == ()
    np.testing.assert_array_equal(whitening.transform(texts[:5]), texts[:5])


def test_more_rank_than_dimensions_is_said(texts):
    whitening = Whitening.fit(texts, spec("500"))
    assert whitening.dimension == 160
    assert "rank 500 is more than the 160 dimensions" in whitening.notes[0]


# --- auto --------------------------------------------------------------------------------------------------


def space(**changes):
    values = {"anisotropy": 0.0, "passage_anisotropy": 0.1, "length_shift": 0.0, "first_share": 0.05}
    return GeneralSpace(**{**values, **changes}, length_direction=np.eye(160)[0])


@pytest.mark.parametrize(
    ("found", "shrinkage", "share"),
    [
        # 2,000 vectors tell 160 dimensions apart by r = 0.92; e = 1 - s r.
        (space(), 1 - 0.1 * 0.92, 0.5),
        (space(anisotropy=0.7), 1.0, 1.0),
        (space(anisotropy=0.7, first_share=0.2), 0.08, 1.0),
        (space(anisotropy=0.7, length_shift=0.9), 0.08, 0.5),
        (space(length_shift=0.9, first_share=0.2), 1 - 0.1 * 0.92, 0.5),
        # 0.3 lies half way from 0.2 to 0.4: s is half of 1 and half of 0.1.
        (space(anisotropy=0.3, length_shift=0.9), 1 - 0.55 * 0.92, 0.5),
    ],
)
def test_auto_follows_what_general_text_shows(texts, found, shrinkage, share):
    chosen = choose(VectorStatistics.of(texts), found)
    assert chosen == (pytest.approx(shrinkage), pytest.approx(share))
    whitening = Whitening.fit(texts, spec("auto"), general=found)
    assert (whitening.shrinkage, whitening.share) == chosen
    assert whitening.general_anisotropy == found.anisotropy


def test_without_general_text_the_collections_own_cosine_decides(texts, rng):
    scattered = normalize(rng.normal(size=(2000, 160)))
    assert Whitening.fit(scattered, spec("auto")).shrinkage == pytest.approx(1 - 0.1 * 0.92)
    narrow = normalize(texts + 0.1)
    assert VectorStatistics.of(narrow).mean_cosine > 0.5
    assert Whitening.fit(narrow, spec("auto")).shrinkage == pytest.approx(160 / 2000)


def test_fewer_vectors_than_dimensions_are_only_centred_by_auto(texts):
    assert Whitening.fit(texts[:80], spec("auto"), general=space(anisotropy=0.7, length_shift=0.9)).shrinkage == 1.0


def test_the_length_direction_is_left_out_and_the_rest_is_as_predicted(texts):
    whitening = Whitening.fit(texts, spec("auto"), general=space(anisotropy=0.7, length_shift=0.9))
    assert whitening.dimension == 159
    assert "long texts from short ones" in whitening.notes[0]
    moved = texts + np.eye(160, dtype=np.float32)[0] * 5.0
    np.testing.assert_allclose(whitening.transform(moved), whitening.transform(texts), atol=1e-4)
    found = whitening.transform(texts).astype(np.float64)
    np.testing.assert_allclose(np.cov(found.T), whitening.predicted_covariance(), atol=1e-4)
    np.testing.assert_allclose(found.mean(axis=0), whitening.predicted_mean(), atol=1e-4)


def test_general_text_is_measured_by_hand():
    # Texts at +x, sentences at +y and -y: shift 1 + 0 over a variance of n/(n-1) in one direction.
    long = np.tile(np.float32([[2, 0]]), (40, 1))
    short = np.tile(np.float32([[0, 1], [0, -3]]), (20, 1))
    found = GeneralSpace.measure(long, short)
    assert found.anisotropy == pytest.approx(-1 / 39)
    assert found.passage_anisotropy == pytest.approx(1.0)
    assert found.length_shift == pytest.approx(39 / 40)
    assert found.first_share == pytest.approx(1.0)
    np.testing.assert_allclose(found.length_direction, [-1, 0], atol=1e-12)


def test_too_little_general_text_measures_nothing(texts):
    assert GeneralSpace.measure(texts[:5], texts[:300]) is None
    assert GeneralSpace.measure(np.zeros((30, 160), np.float32), texts[:300]) is None


def test_spaces_of_other_dimensions_are_refused(texts):
    with pytest.raises(ModelError, match="general text has 3 dimensions, the collection 160"):
        Whitening.fit(texts, spec("auto"), general=VectorStatistics.of(np.eye(3, dtype=np.float32)))
    with pytest.raises(ModelError, match="encode both with one encoder"):
        GeneralSpace.measure(texts, texts[:, :3])
    with pytest.raises(ValueError, match="takes 160 dimensions, found 3"):
        Whitening.fit(texts, spec("0.1")).transform(np.eye(3, dtype=np.float32))


def test_general_texts_are_whole_and_cut_into_sentences():
    background = ["One two three four. Five six. Seven eight nine ten!", "  ", "No end but five words"]
    found = general_texts(background)
    assert found.passages == [background[0], background[2]]
    assert found.sentences == ["One two three four.", "Seven eight nine ten!", "No end but five words"]
    many = general_texts([f"Text number {number} has words. And one more sentence." for number in range(1000)])
    assert (len(many.passages), len(many.sentences)) == (100, 300)


# --- on disk -----------------------------------------------------------------------------------------------


def test_a_whitening_survives_its_file(texts, tmp_path):
    whitening = Whitening.fit(texts, spec("100/0.2"), general=space(anisotropy=0.4))
    for name in ("a.npz", "b.npz"):
        whitening.save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = Whitening.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(loaded.transform(texts), whitening.transform(texts))
    assert loaded.fingerprint == whitening.fingerprint
    assert (loaded.spec, loaded.notes, loaded.general_anisotropy) == (whitening.spec, whitening.notes, 0.4)


def test_the_fingerprint_tells_whitenings_apart(texts):
    kinds = ["auto", "none", "0.1", "0.2", "100", "100/0.2"]
    assert len({Whitening.fit(texts, spec(kind)).fingerprint for kind in kinds}) == len(kinds)
    shared = Whitening.fit(texts, spec("0.1"), share=0.5)
    assert shared.fingerprint != Whitening.fit(texts, spec("0.1")).fingerprint


def test_damaged_and_missing_files_are_named(texts, tmp_path):
    path = tmp_path / "whitening.npz"
    with pytest.raises(DamagedIndexError, match=r"whitening\.npz .* is missing"):
        Whitening.load(path)
    Whitening.fit(texts, spec("0.1")).save(path)
    whole = path.read_bytes()
    for content in (b"", b"nothing like it", whole[:200], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DamagedIndexError, match="is damaged"):
            Whitening.load(path)
    np.savez(path, format_version=np.int64(99))
    with pytest.raises(FormatVersionError, match="format version 99, this twindex reads 1"):
        Whitening.load(path)
