"""Why there is no lookup table: a collection's contexts, weighed."""

import json

import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from search.diagnostics.collection_contexts import collection_contexts
from search.errors import DiagnosisError
from search.json_values import json_value
from search.presentation.sense_plots import plot_contexts
from search.presentation.sense_tables import context_notes, context_rows


def collection(*texts):
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    return Collection("mine", "test", lambda _log: iter(documents))


@pytest.fixture(scope="module")
def model(tiny_transformers):
    return tiny_transformers["plain"]


@pytest.fixture(scope="module")
def report(model):
    return collection_contexts(collection("a bank", "the bank", "", "a bank of"), progress=Silent(), model=str(model))


@pytest.mark.real_model
def test_tables_are_weighed_by_hand(report, model):
    assert (report.survey.texts, report.survey.tokens, report.survey.words) == (4, 7, 4)
    assert (report.dimension, report.static_dimension) == (16, 50)
    assert report.costs.static_bytes == 4 * 50 * 4
    assert report.costs.fitted_bytes == 4 * 16 * 4
    # One neighbour a side: bank (a _ end), (the _ end), (a _ of); a (start _ bank); the; of.
    assert dict(report.costs.contextual_bytes)[1] == 6 * 16 * 4
    assert report.costs.model_bytes == (model / "model.safetensors").stat().st_size
    assert report.forward.texts == 3
    assert report.forward.words == 2
    assert report.costs.forward_ms == report.forward.milliseconds > 0


@pytest.mark.real_model
def test_a_row_for_every_table_and_one_for_the_model(report):
    rows = list(context_rows(report))
    assert [row["a vector for"] for row in rows][:3] == [
        "each word, static (50 d)",
        "each word, fitted (16 d)",
        "each word with 1 word either side (16 d)",
    ]
    assert rows[0]["weighs"] == "800 B"
    assert rows[-1]["rows"] == "-"
    notes = "\n".join(context_notes(report))
    assert "4 texts, 7 words in all, 4 different ones" in notes
    assert "bank 3 of 3" in notes
    shape = json_value(report)
    json.dumps(shape, allow_nan=False)
    assert shape["survey"]["counts"][0]["growth"] == [{"tokens": 7, "contexts": 4}]


@pytest.mark.real_model
def test_growth_is_drawn(report, tmp_path):
    plot_contexts(report, tmp_path / "a.svg")
    plot_contexts(report, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "words either side" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.real_model
def test_only_so_many_documents_are_read_and_some_must_be(model):
    found = collection_contexts(collection("a bank", "of it"), progress=Silent(), model=str(model), limit=1)
    assert found.survey.texts == 1
    with pytest.raises(DiagnosisError, match="mine has no words in 2 texts"):
        collection_contexts(collection("", "!!!"), progress=Silent(), model=str(model))
