"""Words with labelled senses, from collections and files of pairs, and the probe run on them."""

import json

import numpy as np
import pytest

from corpora.catalog import open_collection
from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import Place, open_states
from search.diagnostics.labelled_words import (
    holds_pairs,
    labelled_words,
    probe_collection,
    probe_file,
    probe_pair_file,
)
from search.diagnostics.probe import PairStates, probe_pairs, probe_senses
from search.diagnostics.word_in_context import read_pairs
from search.errors import DiagnosisError


@pytest.fixture(scope="module")
def reader(tiny_transformers):
    return open_states(TransformerSpec(str(tiny_transformers["plain"])))


def labelled(*rows):
    documents = [
        Document(f"d{number}", text, "", {"word": word, "sense": sense} if word else {})
        for number, (text, word, sense) in enumerate(rows)
    ]
    return Collection("mine", "test", lambda _log: iter(documents))


def test_the_word_itself_goes_before_a_form_of_it():
    found = labelled_words(
        labelled(
            ("Banks and a bank", "bank", "river"),
            ("the Banks", "bank", "money"),
            ("embankment and bankruptcy", "bank", "x"),
            ("no label", "", ""),
            ("a bank", "bank", ""),
        )
    )
    assert [(each.place.text[slice(*each.place.span)], each.sense) for each in found.occurrences] == [
        ("bank", "river"),
        ("Banks", "money"),
    ]
    assert found.left_out == 1


def test_the_built_in_senses_are_found_but_for_mice():
    found = labelled_words(open_collection("senses"))
    assert len(found.occurrences) == 269
    assert found.left_out == 1
    assert len({each.word for each in found.occurrences}) == 22
    forms = {(each.word, each.place.text[slice(*each.place.span)].lower()) for each in found.occurrences}
    assert all(form.startswith(word) for word, form in forms)


ROWS = [
    *[(f"the river bank of water {letter}", "bank", "river") for letter in "abcdef"],
    *[(f"my bank account is empty {letter}", "bank", "money") for letter in "abcdef"],
    ("mice", "mouse", "animal"),
]


def test_a_collection_is_probed_as_its_vectors_are(reader):
    found = probe_collection(labelled(*ROWS), reader, Silent())
    places = [
        Place(text, labelled_words(labelled((text, word, sense))).occurrences[0].place.span)
        for text, word, sense in ROWS[:12]
    ]
    expected = probe_senses(reader.word_states(places), ["bank"] * 12, ["river"] * 6 + ["money"] * 6)
    assert [layer.accuracy for layer in found.layers] == [layer.accuracy for layer in expected.layers]
    assert found.layers[1].same == pytest.approx(expected.layers[1].same, abs=1e-5)
    assert (found.majority, found.occurrences, found.words) == (0.5, 12, 1)
    assert found.notes == ("documents that do not hold the word they are labelled with, left out: 1",)


def pair_file(path, labels):
    with path.open("w") as lines:
        for number, label in enumerate(labels):
            other = "the river bank" if label else "my bank account"
            words = other.split()
            record = {
                "word": f"w{number % 4}",
                "sentence1": f"a river bank {'abcdefgh'[number % 8]}",
                "index1": 2,
                "sentence2": other,
                "index2": words.index("bank"),
                "label": bool(label),
            }
            lines.write(json.dumps(record) + "\n")
    return path


def test_pairs_are_probed_over_words_or_with_training_pairs(reader, tmp_path):
    asked = read_pairs(pair_file(tmp_path / "dev.jsonl", [1, 0, 0, 1] * 4))
    train = read_pairs(pair_file(tmp_path / "train.jsonl", [1, 0] * 12))
    folds = probe_pair_file(asked, [], reader, Silent())
    learned = probe_pair_file(asked, train, reader, Silent())

    def states(pairs):
        first, second = (reader.word_states([pair[side] for pair in pairs]) for side in (1, 2))
        return PairStates(first, second, np.array([int(pair.same) for pair in pairs]))

    words = [pair.word for pair in asked]
    for found, expected in [
        (folds, probe_pairs(states(asked), words)),
        (learned, probe_pairs(states(asked), words, train=states(train))),
    ]:
        assert (found.occurrences, found.words, found.majority) == (16, 4, 0.5)
        for layer, by_hand in zip(found.layers, expected.layers, strict=True):
            assert layer == pytest.approx(by_hand, abs=1e-5)


def test_a_file_of_pairs_is_known_by_its_first_line(tmp_path):
    pairs = pair_file(tmp_path / "pairs.jsonl", [1])
    assert holds_pairs(pairs)
    (tmp_path / "other.jsonl").write_text('\n{"_id": "1", "text": "a bank"}\n')
    (tmp_path / "list.jsonl").write_text("[1]\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for name in ("other.jsonl", "list.jsonl", "empty.jsonl", "binary.jsonl", "absent.jsonl"):
        assert not holds_pairs(tmp_path / name)
    assert not holds_pairs(tmp_path)


def test_a_probe_of_a_file_says_what_it_is_of(tiny_transformers, tmp_path):
    model = str(tiny_transformers["plain"])
    path = pair_file(tmp_path / "dev.jsonl", [1, 0, 0, 1] * 4)
    train = pair_file(tmp_path / "train.jsonl", [1, 0] * 12)
    progress = Silent()
    found = probe_file(str(path), train, model=model, sample=20, progress=progress)
    assert progress.notes == ["the probe learns from 20 of 24 training pairs"]
    shape = found.to_json()
    json.dumps(shape, allow_nan=False)
    assert (shape["pairs"], shape["source"], shape["occurrences"]) == (True, str(path), 16)
    assert {"layer", "accuracy", "same", "different", "cosine_auc"} == set(shape["layers"][0])
    with pytest.raises(DiagnosisError, match="goes with a file of pairs, and senses is none"):
        probe_file("senses", train, model=model, progress=progress)


def test_collections_without_labels_are_refused(reader):
    with pytest.raises(DiagnosisError, match="no document of mine names a word and its sense"):
        labelled_words(labelled(("a bank", "", "")))
    with pytest.raises(DiagnosisError, match="no word has two senses"):
        probe_collection(labelled(*ROWS[:6]), reader, Silent())
