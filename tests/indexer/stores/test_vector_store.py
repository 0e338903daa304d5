"""The vector store against brute force in NumPy."""

from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest

from indexer.approximation import DEPTH, ExactBest, choose_factory, cut_fragments, training_rows, tune
from indexer.errors import DamagedIndexError, FactoryError, TooFewVectorsError
from indexer.stores.vector import VectorStore, check_factory
from indexer.vectors import Vectors, normalize

N, D = 1500, 16
FLOATS = [
    "Flat",
    "IVF16,Flat",
    "IVF16,SQfp16",
    "HNSW16",
    "IVF16,PQ8x4fs,Refine(SQfp16)",
    "RR16,IVF16,Flat",
    "PQ8x4fs,Refine(SQfp16)",
]
CODES = ["SQ8", "IVF16,SQ8", "PQ8x4", "IVF16,PQ8x4fs"]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting for each other would take these small trainings longer than they take."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(40, D))
    return normalize(centres[rng.integers(0, 40, N)] + 0.5 * rng.normal(size=(N, D)))


@pytest.fixture(scope="module")
def queries(vectors: Vectors) -> Vectors:
    rng = np.random.default_rng(4)
    return normalize(vectors[:: N // 60][:60] + 0.1 * rng.normal(size=(60, D)).astype(np.float32))


def brute(vectors: Vectors, queries: Vectors, k: int, allowed: np.ndarray | None = None) -> np.ndarray:
    scores = queries @ vectors.T
    if allowed is not None:
        scores[:, np.setdiff1d(np.arange(len(vectors)), allowed)] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def built(factory: str, vectors: Vectors) -> VectorStore:
    blocks = (vectors[start : start + 700] for start in range(0, len(vectors), 700))
    return VectorStore.build(blocks, D, factory=factory, training=vectors)


def overlap(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, expected, strict=True)]))


@pytest.mark.parametrize("factory", FLOATS)
def test_a_tuned_store_finds_what_brute_force_finds_after_a_round_trip(
    factory: str, vectors: Vectors, queries: Vectors, tmp_path: Path
) -> None:
    store = built(factory, vectors)
    best = ExactBest(queries)
    for _ in best.watch([vectors[:1000], vectors[1000:]]):
        pass
    np.testing.assert_array_equal(best.rows[:, :DEPTH], brute(vectors, queries, DEPTH))
    tuning = tune(store, best, fewest=400)
    store.save(tmp_path / "vectors.faiss")
    opened = VectorStore.open(tmp_path / "vectors.faiss")
    assert (opened.size, opened.dimension, opened.effort) == (N, D, tuning.effort)
    scores, rows = opened.search(queries, 10)
    assert overlap(rows, brute(vectors, queries, 10)) >= 0.96
    np.testing.assert_allclose(scores, np.take_along_axis(queries @ vectors.T, rows, 1), atol=2e-3)
    assert tuning.recall >= 0.95
    if factory != "HNSW16":  # a graph walks elsewhere when it keeps more candidates
        np.testing.assert_array_equal(opened.search(queries, 100)[1][:, :10], rows)


@pytest.mark.parametrize("factory", [*FLOATS, *CODES])
def test_among_allowed_rows_the_search_is_exhaustive(factory: str, vectors: Vectors, queries: Vectors) -> None:
    store = built(factory, vectors)
    if store.most_effort:
        store.set_effort(1)
    # What the kind keeps of the vectors is what it can compare exactly.
    kept = store.reconstruct(np.arange(N)) if store.gives_back else vectors
    allowed = np.arange(5, N, 37)
    scores, rows = store.search(queries, 12, allowed=allowed)
    assert np.isin(rows, allowed).all()
    if store.gives_back:
        expected = np.sort(queries @ kept[allowed].T, axis=1)[:, ::-1][:, :12]
        np.testing.assert_allclose(scores, expected, atol=2e-3)
    few = store.search(queries[:2], 12, allowed=np.array([7, 1200]))[1]
    assert (np.sort(few, axis=1) == [7, 1200]).all()


@pytest.mark.parametrize("factory", ["IVF64,Flat", "IVF64,SQfp16", "HNSW16", "IVF64,PQ8x4fs,Refine(SQfp16)"])
def test_as_many_rows_come_as_are_asked_for_whatever_is_probed(
    factory: str, vectors: Vectors, queries: Vectors
) -> None:
    store = built(factory, vectors[:500])
    store.set_effort(1)
    rows = store.search(queries[:3], 500)[1]
    assert (np.sort(rows, axis=1) == np.arange(500)).all()
    # A query's answer does not depend on the company it comes in.
    together = store.search(queries, 40)[1]
    alone = np.concatenate([store.search(queries[number : number + 1], 40)[1] for number in range(len(queries))])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("factory", [*FLOATS[:-1], "IVF16,SQ8"])
def test_stored_vectors_come_back(factory: str, vectors: Vectors, tmp_path: Path) -> None:
    store = built(factory, vectors)
    store.save(tmp_path / "vectors.faiss")
    rows = np.array([5, 1499, 0, 5])
    found = VectorStore.open(tmp_path / "vectors.faiss").reconstruct(rows)
    np.testing.assert_allclose(found, vectors[rows], atol=1e-2 if "SQ8" in factory else 1e-3)


def test_a_kind_that_keeps_nothing_to_give_back_says_so(vectors: Vectors) -> None:
    with pytest.raises(FactoryError, match="does not give its vectors back"):
        built("IVF16,PQ8x4fs", vectors).reconstruct(np.array([1]))


def test_too_few_vectors_to_train_on_are_told_from_nonsense(vectors: Vectors) -> None:
    with pytest.raises(TooFewVectorsError, match="IVF1024,Flat makes 1024 lists, and there are 200 vectors"):
        VectorStore.build([vectors[:200]], D, factory="IVF1024,Flat", training=vectors[:200])
    for nonsense in ("nonsense", "IVF0,Flat", "IVF16,"):
        with pytest.raises(FactoryError, match="cannot make an index"):
            check_factory(nonsense)
    with pytest.raises(FactoryError, match="for 16 dimensions"):
        VectorStore.build([], D, factory="PQ7x4")
    check_factory("PQ25x4")  # of 50 dimensions, if not of 384


def test_no_rows_and_no_allowed_rows_answer_nothing(vectors: Vectors) -> None:
    empty = VectorStore.build([], D)
    assert empty.search(vectors[:3], 5)[1].shape == (3, 0)
    assert built("Flat", vectors).search(vectors[:3], 5, allowed=np.zeros(0, np.int64))[1].shape == (3, 0)
    assert built("Flat", vectors[:3]).search(vectors[:1], 10)[1].shape == (1, 3)


def test_a_file_that_is_no_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "static" / "vectors.faiss"
    with pytest.raises(DamagedIndexError, match=r"vectors\.faiss of static is missing"):
        VectorStore.open(path)
    path.parent.mkdir()
    for content in (b"", b"IxFI", b"no index at all" * 9):
        path.write_bytes(content)
        with pytest.raises(DamagedIndexError, match=r"vectors\.faiss of static is damaged"):
            VectorStore.open(path)


def test_size_decides_the_kind() -> None:
    assert choose_factory(20_000, 384) == "Flat"
    assert choose_factory(1_000_000, 50) == "PQ25x4fs,Refine(SQfp16)"
    assert choose_factory(1_000_000, 384) == "PQ128x4fs,Refine(SQfp16)"
    assert choose_factory(1_000_000, 257) == "PQ257x4fs,Refine(SQfp16)"
    assert choose_factory(10_000_000, 768) == "IVF4096,PQ256x4fs,Refine(SQfp16)"


def test_codes_of_four_bits_are_trained_on_no_more_than_faiss_reads() -> None:
    assert training_rows("PQ128x4fs,Refine(SQfp16)") == 16_384
    assert training_rows("IVF4096,PQ256x4fs,Refine(SQfp16)") == training_rows("IVF64,SQ8") == 100_000


def test_a_recall_below_the_target_is_known(vectors: Vectors, queries: Vectors) -> None:
    store = built("PQ2x4", vectors)
    best = ExactBest(queries)
    for _ in best.watch([vectors]):
        pass
    tuning = tune(store, best)
    assert not tuning.reached
    np.testing.assert_allclose(
        tuning.recall, overlap(store.search(queries[1::2], 10)[1], brute(vectors, queries[1::2], 10))
    )


def test_ties_with_the_tenth_count_as_found() -> None:
    same = normalize(np.tile(np.array([[1.0, 0.0]], np.float32), (30, 1)))
    store = VectorStore.build([same], 2)
    best = ExactBest(same[:4])
    for _ in best.watch([same]):
        pass
    best.rows = best.rows[:, ::-1]  # another ten of the thirty that all tie
    assert best.recall(store, np.arange(4)) >= 0.9


def test_fragments_are_runs_of_words_of_the_texts() -> None:
    texts = ["one two three four five six seven eight nine ten", "short", "", "  "]
    fragments = cut_fragments(texts * 20, np.random.default_rng(0))
    assert len(fragments) == 40
    assert all(fragment in texts[0] or fragment == "short" for fragment in fragments)
    assert {len(fragment.split()) for fragment in fragments} == {1, 3, 4, 5, 6, 7, 8}
