"""A word's senses as rows and lines."""

from dataclasses import replace

import pytest

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import open_states
from indexer.static.averaging import averaged
from search.diagnostics.corpus_senses import CorpusSenses, ExampleLine, SenseGroup
from search.diagnostics.lens import lens
from search.diagnostics.senses import sense_report
from search.diagnostics.word_in_context import LayerAccuracy, SenseEvaluation, StaticAccuracy
from search.diagnostics.word_senses import (
    accuracy_rows,
    corpus_sense_rows,
    follow,
    lens_rows,
    sense_lines,
    sense_rows,
)
from search.presentation.sense_tables import neighbour_rows, spark


@pytest.fixture(scope="module")
def reader(tiny_transformers):
    return open_states(TransformerSpec(str(tiny_transformers["plain"])))


@pytest.fixture(scope="module")
def report(reader):
    static = averaged(["bank"], [[1.0, 0.0]])
    return sense_report("bank", ["the river bank", "my bank account"], reader, background=["a boat"], static=static)


def test_a_row_a_layer_says_the_figures_and_where_the_senses_part(report):
    rows = list(sense_rows(report))
    assert [row["layer"] for row in rows] == ["0", "1", "2"]
    for row, layer in zip(rows, report.layers, strict=True):
        assert row["cosine"] == f"{layer.cosine:.3f}"
        assert row["static"] == "1.00"
        assert row[""].count("█") == round(20 * max(0.0, layer.cosine))
        assert len(row[""]) == 20
        assert (row[" "] == "the senses part") == (layer.layer == report.parting_layer)
    unknown = replace(report, static_cosine=None, parting_layer=None)
    assert {row["static"] for row in sense_rows(unknown)} == {"-"}
    assert not any(row[" "] for row in sense_rows(unknown))


def test_lines_say_that_the_input_rows_are_the_same_and_pass_notes_on(report):
    lines = list(sense_lines(replace(report, notes=("a note",))))
    assert "input embeddings: identical in all contexts" in lines[0]
    assert lines[-1] == "a note"
    apart = replace(report, input_rows_identical=False, input_rows_difference=0.25, parting_layer=None)
    assert "different by 0.25" in next(iter(sense_lines(apart)))
    assert any("do not part" in line for line in sense_lines(apart))


def test_neighbours_stand_in_order_of_what_masking_them_does(report):
    rows = list(neighbour_rows(report))
    assert [row["neighbour"] for row in rows[:2]] == [each.word for each in report.contexts[0].moved_most()]
    assert [bool(row["context"]) for row in rows] == [True, False, True, False]
    first = report.contexts[0].moved_most()[0]
    assert rows[0]["masked, the word moves by"] == f"{first.effect[-1]:.3f}"
    best = max(first.attention)
    assert rows[0]["most attention"] == f"{best:.2f} in layer {first.attention.index(best) + 1}"
    assert len(rows[0]["layer 0 to last"]) == 3
    assert len(rows[0]["layer 1 to last"]) == 2


def test_a_sparkline_has_one_scale():
    assert spark([0.0, 0.5, 1.0], 1.0) == "▁▅█"
    assert spark([0.0, 0.5, 9.0], 2.0) == "▁▃█"
    assert spark([0.0, 0.0], 0.0) == "▁▁"


def test_the_lens_has_a_row_a_token(reader):
    grid = lens("the river bank", reader)
    rows = list(lens_rows(grid))
    assert [row["token"] for row in rows] == list(grid.pieces)
    assert list(rows[0]) == ["token", "layer 0", "layer 1", "layer 2"]
    assert rows[2]["layer 1"] == grid.cells[1][2][0].piece


def test_groups_are_numbered_once_and_their_lines_follow():
    groups = (
        SenseGroup(6, (ExampleLine("my bank account", 0, 0.9), ExampleLine("the bank lent", 1, 0.8))),
        SenseGroup(2, (ExampleLine("river bank", 5, 0.7),)),
    )
    rows = list(corpus_sense_rows(CorpusSenses("bank", 2, 10, 8, groups, ())))
    assert [(row["sense"], row["occurrences"]) for row in rows] == [("1", "6 of 8"), ("", ""), ("2", "2 of 8")]
    assert rows[1]["cosine to its centre"] == "0.80"
    assert rows[2]["for instance"] == "river bank"


def test_the_static_table_shows_what_ties_and_what_does_not():
    static = StaticAccuracy(0.52, 388, 0.513, 250, 0.532, 1, 0.9)
    found = SenseEvaluation("m", 638, 5428, (LayerAccuracy(0, 0.549, 0.9, 0.535),), static, 0.5)
    rows = list(accuracy_rows(found))
    assert rows[0] == {"": "layer 0", "accuracy": "0.549", "threshold": "0.900", "on the training pairs": "0.535"}
    assert rows[1]["accuracy"] == "0.520"
    assert "388 pairs of one form: 0.513" in rows[1].values()
    only = replace(found, static=replace(static, other_forms=0, other_forms_accuracy=None))
    assert "no pairs of other forms" in list(accuracy_rows(only))[1].values()
    assert len(list(accuracy_rows(replace(found, static=None)))) == 1


@pytest.mark.real_model
def test_following_a_word_puts_the_built_in_static_vector_beside_it(tiny_transformers):
    found = follow("bank", ["the river bank", "my bank account"], model=str(tiny_transformers["plain"]))
    assert found.static_cosine == 1.0
    assert found.input_rows_identical
