"""Why each retriever of an index scored a document so: sums that are the score, or words lined up."""

import json
import shutil
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.document import Document
from search.diagnostics.explain import TermExplanation, WordExplanation
from search.diagnostics.explain_context import ContextExplanation
from search.diagnostics.index_explanation import (
    FusionExplanation,
    explain_document,
    explanation_json,
    explanation_lines,
)
from search.errors import QueryError
from search.retrieval.searcher import Searcher

DOCUMENTS = [
    Document("plain", "the river bank", "Water"),
    Document("money", "my bank account is empty; a loan, a loan of money."),
    Document("odd", "Straße naïve ba\u0301nk don't 🤝 機器学習 “BANK” u.s.-based\u2028river\x00boat"),
    Document("long", "boat water river " * 60),
    Document("unknown", "zxqv"),
    Document("empty", "  "),
]
WORDS = ["river", "Bank.", "money", "boat’s", "loan", "zxqv", "Straße", "機器学習", "🤝", "don't", "BANK", "the"]
queries = st.one_of(
    st.text(max_size=40),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=8).map(" ".join),
)


@pytest.fixture(scope="module")
def model(tiny_transformers, tmp_path_factory):
    """A copy of the tiny model, which tests may spoil."""
    return shutil.copytree(tiny_transformers["plain"], tmp_path_factory.mktemp("source") / "model")


@pytest.fixture(scope="module")
def searcher(make_index, tiny_vectors, model, tmp_path_factory):
    torch = f"model={model},backend=torch"
    retrievers = (
        f"bm25,static:vectors={tiny_vectors},white=static:vectors={tiny_vectors},whitening=0.3,fitted:{torch},"
        f"contextual:{torch},whitened:{torch},hybrid:members=bm25+static"
    )
    index = make_index(DOCUMENTS, root=tmp_path_factory.mktemp("explained") / "index", retrievers=retrievers)
    with closing(Searcher.open(index)) as opened:
        yield opened


def shares(explanation):
    """Return what sums to the score."""
    match explanation:
        case TermExplanation():
            return [term.share for term in explanation.terms]
        case WordExplanation():
            means = [share for _, share in (*explanation.query_mean, *explanation.document_mean)]
            return [*(pair.share for pair in explanation.pairs), *means, explanation.constant]
        case FusionExplanation():
            return list(explanation.shares.values())
    return None


def test_shares_sum_to_the_score_for_any_query_and_document(searcher):
    names = ["bm25", "static", "white", "fitted"]

    # Inside, since hypothesis would print the whole index where an example fails.
    @settings(max_examples=60, deadline=None)
    @given(queries)
    def sums(query):
        retrieved = {name: searcher.retrievers[name].retrieve(query, 10).ranking for name in names}
        for document in DOCUMENTS:
            found = explain_document(searcher, query, document.doc_id, align=False)
            for name in names:
                scores = {hit.doc_id: hit.score for hit in retrieved[name]}
                assert sum(shares(found[name])) == pytest.approx(found[name].score, abs=1e-4), name
                assert found[name].score == pytest.approx(scores.get(document.doc_id, 0.0), abs=1e-4), name

    sums()


def test_contextual_scores_are_lined_up_and_taken_apart_with_the_passes_it_cost(searcher):
    found = explain_document(searcher, "river bank", "money")
    for name in ("contextual", "whitened"):
        explanation = found[name]
        assert isinstance(explanation, ContextExplanation)
        hits = {hit.doc_id: hit.score for hit in searcher.retrievers[name].retrieve("river bank", 10).ranking}
        assert explanation.score == pytest.approx(hits["money"], abs=1e-4)
        assert [each.query_word for each in explanation.alignment] == ["river", "bank"]
        assert all(each.document_word in DOCUMENTS[1].text for each in explanation.alignment)
        # 1 + 2 queries, 1 + 9 texts, and one look at each side.
        assert explanation.passes == 3 + 10 + 2
        assert explanation.notes == ()
    lines = "\n".join(explanation_lines("contextual", found["contextual"]))
    assert "looked into with 15 forward passes" in lines
    best = max(found["contextual"].alignment, key=lambda each: each.cosine)
    assert f"in the model's own vectors: {best.query_word} ~ {best.document_word} {best.cosine:.2f}" in lines
    assert "on average)" in lines


def test_without_alignment_the_model_is_left_alone(searcher):
    found = explain_document(searcher, "river bank", "money", align=False)["contextual"]
    assert (found.alignment, found.mean_cosine, found.passes, found.notes) == ((), None, 13, ())


def test_a_model_that_has_gone_or_changed_is_said_in_one_line(searcher, model, tiny_transformers):
    from search.diagnostics import source_model

    weights = model / "model.safetensors"
    kept = weights.rename(model / "kept")  # the index's encoder has the file mapped: it must stay what it was
    try:
        source_model._open.cache_clear()
        shutil.copy(tiny_transformers["masked"] / "model.safetensors", weights)
        changed = explain_document(searcher, "river", "plain")["contextual"]
        assert len(changed.notes) == 1
        assert "has other weights now than when the index was built" in changed.notes[0]
        weights.unlink()
        gone = explain_document(searcher, "river", "plain")["contextual"]
        assert gone.notes[0].startswith("words are not aligned: ")
        assert "\n" not in gone.notes[0]
        assert gone.alignment == ()
        assert gone.query_words[0].word == "river"
        assert list(explanation_lines("contextual", gone))[-1] == f"  {gone.notes[0]}"
    finally:
        kept.replace(weights)
        source_model._open.cache_clear()


def test_a_fusion_is_the_sum_of_its_members_ranks(searcher):
    found = explain_document(searcher, "river bank", "plain")["hybrid"]
    assert set(found.ranks) == {"bm25", "static"}
    assert None not in found.ranks.values()
    assert found.score == pytest.approx(sum(1 / (60 + rank) for rank in found.ranks.values()))
    apart = explain_document(searcher, "empty", "plain")["hybrid"]
    assert (apart.ranks["bm25"], apart.shares["bm25"]) == (None, 0.0)
    assert "  +0.0000  bm25: not in its list" in list(explanation_lines("hybrid", apart))


def test_a_document_is_explained_by_its_best_passage(make_index, tiny_vectors, tmp_path):
    text = "money loan " * 300 + "river boat"
    index = make_index([Document("two", text)], root=tmp_path / "index", retrievers=f"static:vectors={tiny_vectors}")
    with closing(Searcher.open(index)) as opened:
        passages = [cut.text for _, _, cuts in opened.index.documents.iter_cuts(["two"]) for cut in cuts]
        found = explain_document(opened, "river boat", "two")["static"]
        score = opened.retrievers["static"].retrieve("river boat", 1).ranking[0].score
    assert len(passages) > 1
    assert found.score == pytest.approx(score, abs=1e-4)
    assert {"river", "boat"} <= {word for word, _ in found.document_words}


def test_as_json_every_field_has_its_name(searcher):
    found = explanation_json(explain_document(searcher, "river zxqv", "plain"))["retrievers"]
    json.dumps(found, allow_nan=False)
    assert {"query_word", "document_word", "share"} == set(found["static"]["pairs"][0])
    assert {"term", "idf", "frequency"} <= set(found["bm25"]["terms"][0]["statistics"])
    assert {"query_word", "document_word", "cosine"} == set(found["contextual"]["alignment"][0])
    assert found["static"]["unknown"] == ["zxqv"]


def test_lines_name_the_largest_shares_first_and_sum_the_rest(searcher):
    found = explain_document(searcher, "river boat zxqv", "plain")
    lines = list(explanation_lines("static", found["static"], most=1))
    assert lines[0].startswith(f"static: {found['static'].score:.4f} = the sum over pairs")
    assert lines[1].split()[1:] == [found["static"].pairs[0].query_word, "~", found["static"].pairs[0].document_word]
    assert f"{len(found['static'].pairs) - 1} other pairs" in lines[2]
    assert lines[-1] == "  words without a vector: zxqv"
    terms = list(explanation_lines("bm25", found["bm25"]))
    assert "river: idf" in terms[1]
    assert "stands here once; length" in terms[1]
    assert "  +0.0000  boat: not in this document, in 2 others" in terms


def test_a_document_that_is_not_there_is_refused(searcher):
    with pytest.raises(QueryError, match="the index holds no document 'nope'"):
        explain_document(searcher, "river", "nope")
