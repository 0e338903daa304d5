"""Indexing again over an index: what has not changed stays, what has gone leaves every store."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.build import build_index
from indexer.errors import IndexBusyError, IndexerError
from indexer.opening import open_index
from indexer.revision import revise
from indexer.stores import lexical
from search.retrieval.searcher import Searcher

WORDS = "river water bank money loan boat harbour interest tide deposit sail credit storm teller fish vault".split()  # noqa: SIM905


def documents(count: int, *, seed: int = 0, first: int = 0) -> list[Document]:
    rng = np.random.default_rng([seed, first])
    return [
        Document(f"d{number}", " ".join(rng.choice(WORDS, int(rng.integers(3, 12)))) + f" rare{number}")
        for number in range(first, first + count)
    ]


def answers(root: Path, queries: list[str], k: int = 50) -> dict[tuple[str, str], list[tuple[str, float]]]:
    searcher = Searcher.open(root)
    found = {
        (name, query): [(hit.doc_id, hit.score) for hit in answer.hits]
        for query in queries
        for name, answer in searcher.search(query, k).answers.items()
    }
    searcher.close()
    return found


QUERIES = ["river bank", "money", "rare3 storm", "rare7", "interest credit deposit", "rare103 boat"]


def test_an_updated_lexical_index_scores_as_one_built_anew(build: Callable[..., Path]) -> None:
    texts = documents(100)
    root = build(texts, retrievers="bm25")
    changed = [
        *texts[:3],
        *texts[5:50],
        Document("d50", "river river harbour rare3"),
        *texts[51:],
        *documents(3, first=100),
    ]
    build(changed, retrievers="bm25")
    fresh = build(changed, retrievers="bm25", name="fresh")
    assert open_index(root).generation.lexical.joinpath("numbers.npy").exists(), "the index was built anew"
    assert answers(root, QUERIES) == answers(fresh, QUERIES)
    assert answers(root, ["rare4"]) == {("bm25", "rare4"): []}
    for document in (0, 45, 99):
        explained = [open_index(path).lexical("bm25").explain("river rare3 bank", document) for path in (root, fresh)]
        assert explained[0] == explained[1]
    chosen = np.array([1, 44, 48, 98])
    filtered = [open_index(path).lexical("bm25").search("river money", 9, allowed=chosen) for path in (root, fresh)]
    assert sorted(filtered[0]) == sorted(filtered[1]) != []


def test_many_small_updates_score_as_one_build(build: Callable[..., Path], rng: np.random.Generator) -> None:
    held = {document.doc_id: document for document in documents(120)}
    root = build(list(held.values()), retrievers="bm25", name="updated")
    for step in range(12):
        for doc_id in rng.choice(list(held), 2, replace=False):
            del held[doc_id]
        held |= {document.doc_id: document for document in documents(2, seed=step, first=int(rng.integers(200)))}
        root = build(list(held.values()), retrievers="bm25", name="updated")
    assert answers(root, QUERIES) == answers(build(list(held.values()), retrievers="bm25", name="fresh"), QUERIES)


def test_a_large_change_builds_the_lexical_index_anew(build: Callable[..., Path]) -> None:
    build(documents(40), retrievers="bm25")
    root = build(documents(60), retrievers="bm25")
    assert not open_index(root).generation.lexical.joinpath("numbers.npy").exists()


def test_fewer_ids_leave_nothing_behind_in_any_store(build: Callable[..., Path]) -> None:
    texts = ["river water zebra", "bank money", "loan money river", "boat water"]
    build([Document(str(number), text) for number, text in enumerate(texts)])
    root = build([Document(str(number), text) for number, text in enumerate(texts) if number != 0])
    index = open_index(root)
    assert (index.documents.documents, index.documents.texts) == (3, 3)
    assert index.vectors("static").store.size == index.lexical("bm25").size == 3
    assert all(not hits for hits in answers(root, ["zebra"]).values())
    assert "0" not in {doc_id for hits in answers(root, ["river water bank money"]).values() for doc_id, _ in hits}


def test_statistics_stay_frozen_and_vectors_equal_those_of_the_frozen_encoder(build: Callable[..., Path]) -> None:
    build(documents(50))
    before = open_index(build(documents(50)))
    encoder = before.vectors("static").encoder
    root = build([*documents(50)[2:], *documents(2, first=90)])
    after = open_index(root)
    assert after.record("static").encoder == before.record("static").encoder
    assert after.checks["retrievers"]["static"]["statistics"] == {"texts": 50, "added": 2}
    rows = np.arange(after.manifest.texts)
    expected = encoder.encode(list(after.documents.iter_texts()))
    np.testing.assert_array_equal(after.vectors("static").store.reconstruct(rows), expected)


def test_drift_is_said_and_refit_makes_statistics_anew(build: Callable[..., Any]) -> None:
    build(documents(50))
    root = build(documents(70))
    checks = open_index(root).checks["retrievers"]["static"]
    assert checks["statistics"] == {"texts": 50, "added": 20}
    frozen = open_index(root).record("static").encoder
    summary = build(documents(70), refit=True, summary=True)
    assert not summary.notes
    assert open_index(root).record("static").encoder != frozen
    assert open_index(root).checks["retrievers"]["static"]["statistics"] == {"texts": 70, "added": 0}
    summary = build(documents(90), summary=True)
    assert any("--refit" in note and "20 have come since" in note for note in summary.notes)


def test_another_collection_gets_statistics_of_its_own(build: Callable[..., Path]) -> None:
    build(documents(30))
    other = [Document(f"x{number}", document.text + " other") for number, document in enumerate(documents(30, seed=5))]
    root = build(other)
    assert open_index(root).record("static").encoder == open_index(build(other, name="fresh")).record("static").encoder


def test_unchanged_documents_are_cut_as_before(build: Callable[..., Path]) -> None:
    long = [Document(f"l{number}", " ".join(WORDS * 40) + f" end{number}", "a title") for number in range(3)]
    before = open_index(build(long, retrievers="bm25"))
    after = open_index(build([*long, Document("short", "river")], retrievers="bm25"))
    assert before.manifest.passages + 1 == after.manifest.passages > 6
    assert list(before.documents.iter_texts()) == list(after.documents.iter_texts())[:-1]
    assert before.checks["over_budget"] == after.checks["over_budget"] == 3


def test_whoosh_numbers_of_gone_documents_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    lexical.build(["river", "bank", "boat"], tmp_path / "a")
    lexical.update(tmp_path / "a", tmp_path / "b", np.array([0, -1, 1]), removed=["bank"], added=[(2, "bank vault")])
    lexical.update(tmp_path / "b", tmp_path / "c", np.array([-1, -1, 0, 1]), removed=["river"], added=[])
    store = lexical.LexicalStore.open(tmp_path / "c")
    assert store.size == 2
    assert [number for number, _ in store.search("bank", 5)] == [1]
    assert store.search("river", 5) == []
    assert store.document_frequencies(["river", "bank", "boat"]) == [0, 1, 1]
    assert [number for number, _ in lexical.LexicalStore.open(tmp_path / "a").search("bank", 5)] == [1]


def test_documents_are_added_replaced_and_deleted_by_id(build: Callable[..., Path]) -> None:
    root = build(documents(30))
    more = Collection("more", "test", lambda _log: iter([Document("d3", "replaced zebra"), Document("new", "okapi")]))
    revision = revise(root, add=[more], delete=["d1,d2", "d4"])
    summary = build_index(revision.collection, root, revision.settings, progress=Silent())
    assert (summary.manifest.documents, summary.read.documents) == (28, 28)
    held = [document.doc_id for document in open_index(root).documents.iter_documents()]
    assert held == ["d0", "d3", *(f"d{number}" for number in range(5, 30)), "new"]
    assert answers(root, ["zebra"])["bm25", "zebra"][0][0] == "d3"
    assert answers(root, ["rare3"])["bm25", "rare3"] == []
    assert summary.manifest.collection == "tiny"


def test_deleting_an_unknown_id_is_refused_by_name(build: Callable[..., Path]) -> None:
    root = build(documents(5))
    with pytest.raises(IndexerError, match="holds no document 'nobody', nor 1 others; nothing was deleted"):
        revise(root, delete=["d1,nobody,none"])


def test_an_index_that_changed_since_it_was_revised_is_left_alone(build: Callable[..., Path]) -> None:
    root = build(documents(5))
    revision = revise(root, delete=["d1"])
    build(documents(8))
    with pytest.raises(IndexBusyError, match="indexed again by somebody else"):
        build_index(revision.collection, root, revision.settings, progress=Silent())
    assert open_index(root).manifest.documents == 8


def test_replaying_the_same_collection_changes_no_byte_of_the_manifest(build: Callable[..., Path]) -> None:
    root = build(documents(5))
    before = open_index(root).generation.manifest.read_bytes()
    build(documents(5))
    assert open_index(root).generation.manifest.read_bytes() == before


def test_a_refit_makes_statistics_anew_and_encodes_no_text_again(
    build: Callable[..., Any], tiny_transformers: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexer.contextual.compiled import CompiledEncoder

    model = f"model={tiny_transformers['plain']},precision=fp32"
    whitened = f"whitened=contextual:{model},whitening=0.5"
    retrievers = f"contextual:{model},{whitened},fitted:{model}"
    # Words that are one piece each to this model: no text is cut.
    words, rng = ["river", "bank", "money", "water", "loan", "boat", "fish"], np.random.default_rng(4)
    texts = list(dict.fromkeys(" ".join(rng.choice(words, 8)) for _ in range(40)))
    asked: list[str] = []
    honest = CompiledEncoder.encode_counted

    def noted(self: Any, given: Sequence[str], **how: Any) -> Any:
        asked.extend(given)
        return honest(self, given, **how)

    monkeypatch.setattr(CompiledEncoder, "encode_counted", noted)
    root = build(texts[:30], retrievers=retrievers)
    assert set(texts[:30]) <= set(asked)
    asked.clear()
    summary = build(texts, retrievers=retrievers, summary=True)
    assert set(texts[30:]) <= set(asked)
    assert not set(texts[:30]) & set(asked)
    for name in ("whitened", "fitted"):
        assert any(f"{name}: its statistics are of" in note and "--refit" in note for note in summary.notes)
    before = open_index(root)
    asked.clear()
    build(texts, retrievers=retrievers, refit=True)
    assert not set(texts) & set(asked)
    after = open_index(root)
    assert after.record("contextual").encoder == before.record("contextual").encoder
    assert after.record("whitened").whitening != before.record("whitened").whitening
    assert after.record("fitted").encoder != before.record("fitted").encoder
    fresh = build(texts, retrievers=retrievers, name="fresh")
    for name in ("contextual", "whitened", "fitted"):
        rows = np.arange(after.manifest.texts)
        expected = open_index(fresh).vectors(name).store.reconstruct(rows)
        np.testing.assert_allclose(after.vectors(name).store.reconstruct(rows), expected, atol=1e-5)
        assert after.checks["retrievers"][name]["statistics"] == {"texts": len(rows), "added": 0}


@pytest.mark.parametrize(("added", "is_said"), [(10, False), (11, True)])
def test_drift_is_said_beyond_a_fifth_and_not_before(build: Callable[..., Any], added: int, is_said: bool) -> None:
    build(documents(50))
    summary = build(documents(50 + added), summary=True)
    assert any("--refit" in note for note in summary.notes) is is_said


def test_vectors_taken_from_the_generation_before_are_those_of_a_fresh_build_with_its_statistics(
    build: Callable[..., Path], rng: np.random.Generator
) -> None:
    # Reordered, deleted, doubled, changed and new texts at once, several times over.
    held = {document.doc_id: document for document in documents(60)}
    root = build(list(held.values()), name="updated")
    frozen = open_index(root).vectors("static").encoder
    for step in range(5):
        ids = rng.permutation(list(held)).tolist()
        held = {doc_id: held[doc_id] for doc_id in ids[3:]}
        held |= {document.doc_id: document for document in documents(4, seed=step, first=100 + 5 * step)}
        held["twin"] = Document("twin", held[ids[-1]].text)
        root = build(list(held.values()), name="updated")
        index = open_index(root)
        assert index.record("static").encoder == frozen.fingerprint
        expected = frozen.encode(list(index.documents.iter_texts()))
        rows = np.arange(index.manifest.texts)
        np.testing.assert_allclose(index.vectors("static").store.reconstruct(rows), expected, atol=1e-5)
        for query in QUERIES:
            asked = frozen.encode([query])[0]
            vectors = {doc_id: frozen.encode([document.text])[0] for doc_id, document in held.items()}
            scores = {doc_id: float(vector @ asked) for doc_id, vector in vectors.items() if vector.any()}
            found = answers(root, [query], 200)["static", query]
            assert {doc_id for doc_id, _ in found} == (set(scores) if asked.any() else set())
            np.testing.assert_allclose([score for _, score in found], [scores[i] for i, _ in found], atol=1e-5)
            assert all(scores[a] >= scores[b] - 1e-5 for (a, _), (b, _) in pairwise(found))
