"""The words that decided a hit are those of the exact shares, written as the text writes them."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document
from indexer.static.averaging import averaged
from indexer.whitening import Whitening
from indexer.whitening_spec import WhiteningSpec
from search.diagnostics.decisive import mark_decisive
from search.diagnostics.explain import document_word_shares, explain_words, query_direction
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]


@pytest.mark.parametrize("whitened", [False, True])
def test_shares_are_those_of_the_full_explanation(rng: np.random.Generator, whitened: bool) -> None:
    words = [f"w{number}" for number in range(30)]
    encoder = averaged(words, rng.normal(size=(30, 6)), rng.uniform(0.5, 2.0, 30))
    texts = [" ".join(rng.choice(words, 8)) for _ in range(60)]
    whitening = Whitening.fit([encoder.encode(texts)], WhiteningSpec.parse("0.2")) if whitened else None
    query, text = "w1 w2 w1 w9", texts[0]
    vector = encoder.encode([query])
    if whitening is not None:
        vector = whitening.transform(vector)
        vector = vector / np.linalg.norm(vector)
    found = dict(document_word_shares(query_direction(vector, whitening), text, encoder, whitening))
    whole = explain_words(query, text, encoder, whitening)
    expected = dict(whole.document_words)
    for word, share in whole.document_mean:
        expected[word] += share
    assert found == pytest.approx(expected, abs=1e-6)
    rest = sum(share for _, share in whole.query_mean) + whole.constant
    assert sum(found.values()) + rest == pytest.approx(whole.score, abs=1e-6)


def test_texts_without_known_words_have_no_shares() -> None:
    encoder = averaged(["river"], [[1.0, 0.0]])
    assert document_word_shares(np.array([1.0, 0.0]), "zebra", encoder) == []
    assert document_word_shares(np.array([1.0, 0.0]), "", encoder) == []


def test_each_retriever_names_the_words_that_added_most(build: Build) -> None:
    texts = [
        "The RIVERS were high; boats stayed on the river, and the money was lost.",
        "A loan is money.",
        "zebra",
    ]
    searcher = Searcher.open(build(texts))
    marked = mark_decisive(searcher, searcher.search("river boat", 3)).decisive
    # BM25 counts stems, so that both forms of each word count; the table knows "river" of these alone.
    assert set(marked["bm25"]["d0"]) == {"rivers", "river", "boats"}
    assert marked["static"]["d0"] == ("river",)
    assert marked["static"].get("d1") == ()
    assert set(marked["hybrid"]["d0"]) == {"rivers", "river", "boats"}
    searcher.close()


def test_a_lexical_hit_shows_the_passage_that_holds_the_words(build: Build) -> None:
    long = " ".join(["river water sand"] * 400) + " the zebra crossed at last"
    searcher = Searcher.open(build([Document("long", long, "A title"), "money"], retrievers="bm25"))
    comparison = searcher.search("zebra", 1)
    assert "zebra" not in comparison.answers["bm25"].hits[0].passage
    marked = mark_decisive(searcher, comparison)
    hit = marked.comparison.answers["bm25"].hits[0]
    assert "zebra" in hit.passage
    assert hit.passage_number > 0
    assert (hit.doc_id, hit.score, hit.rank) == ("long", comparison.answers["bm25"].hits[0].score, 1)
    assert marked.decisive == {"bm25": {"long": ("zebra",)}}
    searcher.close()


def test_queries_that_say_nothing_name_nothing(build: Build) -> None:
    searcher = Searcher.open(build(["river", ""]))
    for query in ("", "!!!", "zxqv"):
        decisive = mark_decisive(searcher, searcher.search(query, 2)).decisive
        assert not any(words for found in decisive.values() for words in found.values())
    searcher.close()


def test_scripts_without_spaces_are_marked_inside_their_runs(build: Build) -> None:
    searcher = Searcher.open(build(["我喜欢机器学习的书", "money"], retrievers="bm25"))
    words = mark_decisive(searcher, searcher.search("机器", 1)).decisive["bm25"]["d0"]
    assert "机器" in words or {"机", "器"} <= set(words)
    searcher.close()


def test_marking_takes_little_and_is_no_part_of_a_querys_cost(build: Build) -> None:
    texts = [" ".join(["river", "water", "bank", "money", "loan", "boat"] * 25) + f" n{n}" for n in range(20)]
    searcher = Searcher.open(build(texts))
    comparison = searcher.search("river bank money", 10)
    started = time.perf_counter()
    marked = mark_decisive(searcher, comparison)
    spent = time.perf_counter() - started
    hits = sum(len(answer.hits) for answer in marked.comparison.answers.values())
    assert hits == 30
    # A few milliseconds a hit at the very most; 0.4 ms where nothing else runs.
    assert spent / hits < 0.02
    for name, answer in marked.comparison.answers.items():
        assert answer.cost == comparison.answers[name].cost
    searcher.close()
