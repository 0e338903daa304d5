import json
import math

import numpy as np
import pytest

from corpora.progress import Silent
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import Place, Span, open_states
from indexer.static.averaging import averaged
from search.diagnostics.anisotropy import unit
from search.diagnostics.word_in_context import (
    WordPairInContext,
    best_threshold,
    evaluate_senses,
    pair_cosines,
    read_pairs,
)
from search.errors import DiagnosisError

RECORD = {
    "word": "bank",
    "sentence1": "the river bank",
    "sentence2": "my bank account",
    "index1": 2,
    "index2": 1,
    "label": False,
}


@pytest.fixture(scope="module")
def reader(tiny_transformers):
    return open_states(TransformerSpec(str(tiny_transformers["plain"])))


def write(path, *records):
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records))
    return path


def test_a_line_becomes_two_places(tmp_path):
    found = read_pairs(write(tmp_path / "pairs.jsonl", RECORD, "", RECORD | {"label": True}))
    assert found[0] == WordPairInContext(
        "bank", Place("the river bank", Span(10, 14)), Place("my bank account", Span(3, 7)), False
    )
    assert found[0].forms == ("bank", "bank")
    assert [pair.same for pair in found] == [False, True]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "pairs.jsonl:2"),
        ("[]", "pairs.jsonl:2"),
        ({key: value for key, value in RECORD.items() if key != "index2"}, "no 'index2'"),
        (RECORD | {"index1": 3}, "no token 3 among the 3"),
        (RECORD | {"index1": -1}, "no token -1"),
        (RECORD | {"index1": True}, "no token True"),
        (RECORD | {"label": "F"}, "label is 'F'"),
        (RECORD | {"sentence1": None}, "pairs.jsonl:2"),
        (RECORD | {"sentence1": ""}, "no token 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, said):
    with pytest.raises(DiagnosisError, match=said) as caught:
        read_pairs(write(tmp_path / "pairs.jsonl", RECORD, line))
    assert "\n" not in str(caught.value)


def test_files_without_pairs(tmp_path):
    with pytest.raises(DiagnosisError, match="cannot be read"):
        read_pairs(tmp_path / "nowhere.jsonl")
    with pytest.raises(DiagnosisError, match="holds no pair"):
        read_pairs(write(tmp_path / "empty.jsonl", ""))
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DiagnosisError, match="cannot be read"):
        read_pairs(tmp_path / "binary.jsonl")


@pytest.mark.parametrize(
    ("cosines", "same", "expected"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], (0.5, 1.0)),
        ([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1], (0.15, 0.75)),  # 0.15 and 0.85 are right three times: the lowest
        ([0.5, 0.5, 0.5], [1, 1, 0], (0.499999, 2 / 3)),
        ([0.5, 0.5, 0.5], [0, 1, 0], (0.500001, 2 / 3)),  # equal cosines cannot be parted
    ],
)
def test_the_best_threshold_by_hand(cosines, same, expected):
    assert best_threshold(np.array(cosines), np.array(same, dtype=bool)) == pytest.approx(expected)


def test_the_best_threshold_is_the_best_of_all(rng):
    cosines, same = rng.normal(size=60).round(1), rng.random(60) < 0.5
    found = best_threshold(cosines, same)
    candidates = [*(cosines - 0.01), cosines.max() + 0.01]
    assert found.accuracy == max(((cosines >= candidate) == same).mean() for candidate in candidates)
    assert ((cosines >= found.cosine) == same).mean() == found.accuracy


def pair(first, second, same):
    places = [Place(text, Span(*span)) for text, span in (first, second)]
    return WordPairInContext("bank", *places, same)


PAIRS = [
    pair(("the river bank", (10, 14)), ("my bank account", (3, 7)), False),
    pair(("my bank", (3, 7)), ("my bank", (3, 7)), True),
    pair(("a boat", (2, 6)), ("the water", (4, 9)), False),
]


def test_cosines_of_pairs_come_layer_by_layer(reader):
    found = pair_cosines(PAIRS, reader, Silent())
    for column, (_, first, second, _) in enumerate(PAIRS):
        vectors = unit(reader.word_states([first, second]))
        assert found[:, column] == pytest.approx((vectors[:, 0] * vectors[:, 1]).sum(axis=1), abs=1e-5)
    assert found[:, 1] == pytest.approx(np.ones(3))


def test_every_layer_and_the_static_table_are_measured(reader):
    static = averaged(["bank", "boat", "water"], [[1, 0], [0.6, 0.8], [0, 1]])
    found = evaluate_senses(PAIRS, PAIRS, reader, static=static)
    assert [layer.layer for layer in found.layers] == [0, 1, 2]
    assert [layer.accuracy for layer in found.layers] == [layer.train_accuracy for layer in found.layers] == [1.0] * 3
    # Static cosines 1 (different), 1 (same), .8 (different): equal forms cannot be told apart.
    assert found.static.accuracy == pytest.approx(2 / 3)
    assert (found.static.same_form, found.static.same_form_accuracy) == (2, 0.5)
    assert (found.static.other_forms, found.static.other_forms_accuracy) == (1, 1.0)
    assert found.majority == pytest.approx(2 / 3)
    shape = found.as_json()
    assert shape["layers"][0].keys() >= {"layer", "accuracy"}
    assert shape["static"]["accuracy"] == found.static.accuracy
    json.dumps(shape, allow_nan=False)


def test_unknown_forms_are_counted_and_a_sample_is_announced(reader):
    static = averaged(["bank"], [[1.0, 0.0]])
    found = evaluate_senses(PAIRS, PAIRS, reader, static=static, sample=2)
    assert found.static.unknown == 1
    assert found.train_pairs == 2
    assert found.notes == ("thresholds come from 2 of 3 training pairs",)
    assert found.static.same_form_accuracy is not None
    with pytest.raises(DiagnosisError, match="0 to learn from"):
        evaluate_senses(PAIRS, [], reader)


def test_a_sentence_longer_than_the_model_is_read_around_the_word(reader):
    text = "water " * 60 + "bank"
    long = WordPairInContext("bank", Place(text, Span(360, 364)), PAIRS[1].second, True)
    assert all(map(math.isfinite, pair_cosines([long], reader, Silent())[:, 0]))


@pytest.mark.slow
@pytest.mark.real_model
def test_wic_by_layer_is_as_published_work_leads_to_expect(shared_data):
    from indexer.static.word_vectors import load_word_vectors

    vectors = load_word_vectors("glove")
    found = evaluate_senses(
        read_pairs(shared_data / "wic" / "dev.jsonl"),
        read_pairs(shared_data / "wic" / "train.jsonl"),
        open_states(),
        static=averaged(vectors.words, vectors.matrix),
    )
    accuracies = [layer.accuracy for layer in found.layers]
    assert accuracies[0] == pytest.approx(0.53, abs=0.03)
    assert max(accuracies[3:]) >= 0.57
    assert 0.48 <= found.static.accuracy <= 0.55
