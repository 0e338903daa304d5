"""Senses of a word in an index, and its words by context dependence."""

import json

import pytest

from corpora.progress import Silent
from indexer.opening import open_index
from search.diagnostics.corpus_senses import corpus_senses
from search.diagnostics.index_senses import index_senses
from search.diagnostics.word_senses import open_reader
from search.errors import DiagnosisError
from search.json_values import json_value
from search.presentation.sense_plots import plot_dependence
from search.presentation.sense_tables import dependence_notes, dependence_rows, grouping_notes

TEXTS = [
    *[f"my bank account is empty {letter}" for letter in "abcdef"],
    *[f"i sat on the river bank of water {letter}" for letter in "ghij"],
    "boat",
]


@pytest.fixture(scope="module")
def model(tiny_transformers):
    return str(tiny_transformers["plain"])


@pytest.fixture(scope="module")
def index(make_index, tmp_path_factory):
    return open_index(make_index(TEXTS, root=tmp_path_factory.mktemp("senses") / "index", retrievers="bm25"))


@pytest.fixture(scope="module")
def found(index, model):
    return index_senses(index, "bank", model=model, progress=Silent())


def test_a_word_is_grouped_and_placed_among_all_words(found, model):
    alone = corpus_senses("bank", TEXTS, open_reader(model))
    assert found.senses == alone
    ranked = found.dependence
    # Fewer than forty words occur three times, so twice is enough.
    assert (ranked.least_occurrences, ranked.texts) == (2, 11)
    own = alone.mean_cosine - ranked.anisotropy
    assert found.place == sum(value < own for value in ranked.self_similarities) / ranked.words
    assert next(each for each in (*ranked.dependent, *ranked.stable) if each.word == "bank").self_similarity == (
        pytest.approx(own, abs=1e-5)
    )


def test_everyday_words_are_ranked_and_left_out_beside_the_others(index, model):
    ranked = index_senses(index, model=model, progress=Silent()).dependence
    named = [each.word for each in ranked.dependent]
    assert {"my", "of", "is"} <= {*named, *(each.word for each in ranked.stable)}
    assert {each.word for each in ranked.dependent_beside} <= {"account", "empty", "sat"}
    assert [each.self_similarity for each in ranked.dependent] == sorted(ranked.self_similarities)[: len(named)]


def test_without_a_word_there_is_the_ranking_alone(index, model):
    found = index_senses(index, model=model, sample=5, progress=Silent())
    assert (found.senses, found.place) == (None, None)
    assert found.dependence.texts == 5
    assert list(grouping_notes(found)) == []


def test_a_corpus_that_repeats_no_word_still_answers_about_one(make_index, model, tmp_path):
    index = open_index(make_index(["the river bank", "boat"], root=tmp_path / "index", retrievers="bm25"))
    progress = Silent()
    found = index_senses(index, "bank", model=model, progress=progress)
    assert (found.dependence, found.place, found.senses.mean_cosine) == (None, None, None)
    assert "occurs 2 times" in progress.notes[0]
    assert list(dependence_notes(found)) == []
    with pytest.raises(DiagnosisError, match="occurs 2 times"):
        index_senses(index, model=model, progress=Silent())
    with pytest.raises(DiagnosisError, match="stands in none of the texts"):
        index_senses(index, "loan", model=model, progress=Silent())


def test_an_index_is_read_with_its_own_model(make_index, tmp_path, model):
    retrievers = f"bm25,contextual:model={model},backend=torch"
    index = open_index(make_index(TEXTS, root=tmp_path / "index", retrievers=retrievers))
    assert index_senses(index, "bank", progress=Silent()).model == model


def test_tables_and_lines_name_words_and_where_the_one_asked_for_stands(found):
    rows = list(dependence_rows(found.dependence))
    first = found.dependence.dependent[0]
    assert rows[0]["depend on context most"] == f"{first.word} {first.self_similarity:+.2f}"
    notes = "\n".join([*grouping_notes(found), *dependence_notes(found)])
    assert "10 texts hold the word, 10 were read" in notes
    assert "silhouette by number of groups: 2: " in notes
    assert f"{found.place:.0%} of the words depend on their contexts more" in notes
    shape = json_value(found)
    json.dumps(shape, allow_nan=False)
    assert set(shape["senses"]["groups"][0]["examples"][0]) == {"line", "text", "cosine"}


def test_words_are_drawn_from_both_ends(found, tmp_path):
    plot_dependence(found.dependence, tmp_path / "words.svg")
    assert ">bank<" in (tmp_path / "words.svg").read_text(encoding="utf-8")
