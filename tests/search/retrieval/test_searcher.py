"""Retrievers side by side over small indexes that can be worked out by hand."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.document import Document
from corpora.judgements import Query
from search.errors import FilterError, QueryError
from search.ranking import ScoredDocument
from search.retrieval.fusion import fuse
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]


def _ids(searcher: Searcher, query: str, k: int = 10) -> dict[str, list[str]]:
    found = searcher.search(query, k)
    return {name: [hit.doc_id for hit in answer.hits] for name, answer in found.answers.items()}


def test_an_empty_document_shifts_no_row(build: Build) -> None:
    searcher = Searcher.open(build(["money", "", "river bank"]))
    assert {name: ids[0] for name, ids in _ids(searcher, "river").items()} == {
        "bm25": "d2",
        "static": "d2",
        "hybrid": "d2",
    }
    searcher.close()


def test_cosine_is_that_of_the_weighted_means(build: Build) -> None:
    searcher = Searcher.open(build(["river water", "money loan"], retrievers=""))
    hits = searcher.search("water").answers["static"].hits
    # one document each: river and water weigh ln(1 + 2/1), so (1, 0) + (.8, .2) = (1.8, .2)
    expected = (1.8 * 0.8 + 0.2 * 0.2) / math.hypot(1.8, 0.2) / math.hypot(0.8, 0.2)
    assert hits[0].doc_id == "d0"
    assert hits[0].score == pytest.approx(expected, abs=1e-6)
    searcher.close()


def test_three_documents_give_three_rows_at_k_10(build: Build) -> None:
    searcher = Searcher.open(build(["river", "river water", "river bank"]))
    assert {len(ids) for ids in _ids(searcher, "river").values()} == {3}
    searcher.close()


def test_no_documents_give_empty_rankings(build: Build) -> None:
    searcher = Searcher.open(build([]))
    batch = searcher.run([Query(str(number), "river") for number in range(25)])
    assert all(len(run) == 25 and not any(run.values()) for run in batch.runs.values())
    searcher.close()


@pytest.mark.parametrize(
    "query", ["", "   ", "!!!", "zxqv blorft", "🤷", "\x00", "(((", "NOT", "[a TO", '"unclosed', "a*"]
)
def test_a_query_without_a_known_word_finds_nothing_and_shows_no_nan(build: Build, query: str) -> None:
    searcher = Searcher.open(build(["river bank", "money loan"]))
    comparison = searcher.search(query)
    answer = comparison.answers["static"]
    assert answer.hits == ()
    assert answer.coverage is not None
    assert answer.coverage.known == ()
    json.dumps([answer.cost for answer in comparison.answers.values()], allow_nan=False)
    searcher.close()


def test_a_text_of_unknown_words_is_never_found_by_vectors(build: Build) -> None:
    searcher = Searcher.open(build(["river", "zxqv"]))
    assert _ids(searcher, "river")["static"] == ["d0"]
    assert _ids(searcher, "zxqv")["bm25"] == ["d1"]
    searcher.close()


def test_a_query_equal_to_a_document_scores_at_most_one(build: Build) -> None:
    searcher = Searcher.open(build(["river water bank money", "river", "boat boat water"]))
    for query in ("river water bank money", "boat boat water"):
        score = searcher.search(query).answers["static"].hits[0].score
        assert 0.9999 < score <= 1.0
    searcher.close()


def test_equal_texts_rank_by_descending_id_at_any_k(build: Build) -> None:
    documents = [Document(f"d{number}", "river bank") for number in range(100)]
    searcher = Searcher.open(build(documents))
    expected = sorted((document.doc_id for document in documents), reverse=True)
    for k in (1, 7, 10, 99, 100):
        for name, ids in _ids(searcher, "river", k).items():
            assert ids == expected[:k], name
    searcher.close()


def test_d2_comes_before_d10_where_texts_are_equal(build: Build) -> None:
    searcher = Searcher.open(build([Document("d10", "river"), Document("d2", "river")]))
    assert {tuple(ids) for ids in _ids(searcher, "river").values()} == {("d2", "d10")}
    searcher.close()


def test_the_top_10_is_a_prefix_of_the_top_100(build: Build) -> None:
    rng = np.random.default_rng(3)
    words = ["river", "water", "bank", "money", "loan", "boat"]
    texts = [" ".join(rng.choice(words, size=int(rng.integers(1, 7)))) for _ in range(300)]
    searcher = Searcher.open(build(texts))
    for query in ("river bank", "money", "boat water loan"):
        short, long = _ids(searcher, query, 10), _ids(searcher, query, 100)
        for name in short:
            assert short[name] == long[name][:10]
    searcher.close()


def test_what_is_evaluated_is_what_is_shown(build: Build) -> None:
    texts = [f"river {'water ' * (n % 5)} {'bank ' * (n % 3)} money" for n in range(60)]
    searcher = Searcher.open(build(texts))
    shown = searcher.search("river bank", 10)
    batch = searcher.run([Query("q", "river bank")], 1000)
    for name, answer in shown.answers.items():
        assert [hit.doc_id for hit in answer.hits] == [document.doc_id for document in batch.runs[name]["q"][:10]]
    searcher.close()


def test_a_query_that_is_a_document_does_not_find_itself(build: Build) -> None:
    searcher = Searcher.open(build(["river", "river water", "river bank"]))
    batch = searcher.run([Query("d0", "river")], exclude_same_id=True)
    for run in batch.runs.values():
        assert {document.doc_id for document in run["d0"]} == {"d1", "d2"}
    searcher.close()


def test_a_filter_is_exact_and_not_applied_after_the_cut(build: Build) -> None:
    documents = [Document(f"a{n:03d}", "river river bank", metadata={"lang": "en"}) for n in range(200)]
    documents.append(Document("z", "river and some money", metadata={"lang": "fr", "year": 1999}))
    searcher = Searcher.open(build(documents))
    for condition in ("lang=fr", "year=1999"):
        found = searcher.search("river", 3, selection=searcher.select([condition]))
        assert {name: [hit.doc_id for hit in answer.hits] for name, answer in found.answers.items()} == {
            "bm25": ["z"],
            "static": ["z"],
            "hybrid": ["z"],
        }
    nothing = searcher.search("river", 3, selection=searcher.select(["lang=de"]))
    assert not any(answer.hits for answer in nothing.answers.values())
    searcher.close()


def test_a_filter_that_cannot_be_applied_is_refused(build: Build) -> None:
    searcher = Searcher.open(build([Document("a", "river", metadata={"lang": "en"})]))
    with pytest.raises(FilterError, match="field=value"):
        searcher.select(["lang"])
    with pytest.raises(FilterError, match="fields of this index: lang"):
        searcher.select(["language=en"])
    searcher.close()


def test_k_below_one_is_refused(build: Build) -> None:
    searcher = Searcher.open(build(["river"]))
    with pytest.raises(QueryError, match="at least 1"):
        searcher.search("river", 0)
    searcher.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("C++", {"cpp"}),
        ("AT&T", {"att"}),
        ("f-16", {"jet"}),
        ("title:foo", {"foo"}),
        ("don't", {"dont"}),
        ("what is AND?", {"and"}),
        ("to be or not to be", {"hamlet"}),
        ("cafe", {"cafe"}),
        ("café", {"cafe"}),
        ("don’t", {"dont"}),
        ("机器学习", {"zh"}),
        ("学习", {"zh"}),
        ("which engine was flown across the wide sea by a jet pilot", {"jet"}),
    ],
)
def test_free_text_is_literal_for_bm25(build: Build, query: str, expected: set[str]) -> None:
    documents = [
        Document("cpp", "a compiler for C++"),
        Document("att", "AT&T sold phones"),
        Document("jet", "the f-16 is a jet"),
        Document("foo", "a title of foo"),
        Document("dont", "they don't mind"),
        Document("and", "AND is an operator, what else"),
        Document("hamlet", "to be, or not to be"),
        Document("cafe", "a café in Paris"),
        Document("zh", "机器学习 很有趣"),
    ]
    searcher = Searcher.open(build(documents, retrievers="bm25"))
    assert expected == set(_ids(searcher, query, 1)["bm25"])
    searcher.close()


def test_fusion_by_hand() -> None:
    first = [ScoredDocument("a", 9.0, 2), ScoredDocument("b", 8.0)]
    second = [ScoredDocument("b", 0.9, 1), ScoredDocument("c", 0.8)]
    fused = fuse([first, second])
    assert [(document.doc_id, document.passage) for document in fused] == [("b", 1), ("a", 2), ("c", 0)]
    assert [document.score for document in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_fusion_holds_every_document_once_and_does_not_depend_on_the_order_of_lists(
    lists: list[list[str]],
) -> None:
    rankings = [[ScoredDocument(doc_id, 1.0 / (1 + n)) for n, doc_id in enumerate(ids)] for ids in lists]
    fused = fuse(rankings)
    assert sorted(d.doc_id for d in fused) == sorted({doc_id for ids in lists for doc_id in ids})
    backwards = fuse(rankings[::-1])
    assert {d.doc_id: d.score for d in backwards} == pytest.approx({d.doc_id: d.score for d in fused})
