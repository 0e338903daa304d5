"""The layers of a model over a collection, and one layer's queries among another's documents."""

from dataclasses import replace

import numpy as np
import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.judgements import Query
from corpora.progress import Silent
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import open_states
from search.diagnostics.anisotropy import mean_cosine, unit
from search.diagnostics.collection_layers import collection_layers, layer_rows
from search.diagnostics.collection_portability import collection_portability, portability_notes, portability_rows
from search.errors import DiagnosisError
from search.presentation.sense_plots import plot_portability

TEXTS = [
    "the river bank",
    "my bank account is empty",
    "a loan of money",
    "i sat on the boat",
    "fish of the water",
    "  ",
    "the bank of my boat is on water",
]


@pytest.fixture
def collection():
    documents = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]
    queries = {"q1": Query("q1", "river"), "q2": Query("q2", "money of my account"), "q3": Query("q3", "unjudged")}
    qrels = {"test": {"q1": {"d0": 1, "d3": 0}, "q2": {"d1": 2, "d2": 1, "gone": 1}}}
    return Collection("tiny", "test", lambda _log: iter(documents), queries, qrels)


@pytest.fixture(scope="module")
def model(tiny_transformers):
    return str(tiny_transformers["plain"])


@pytest.fixture(scope="module")
def states(model):
    """(3, 6, 16) states of the texts that are not empty."""
    return open_states(TransformerSpec(model)).pooled_states([text for text in TEXTS if text.strip()])


def test_a_row_a_layer_with_the_mean_cosine_of_all_pairs(collection, model, states):
    rows = collection_layers(collection, progress=Silent(), model=model)
    assert [row.layer for row in rows] == [0, 1, 2]
    assert [row.mean_cosine for row in rows] == pytest.approx(mean_cosine(states).tolist(), abs=0.05)
    for row in rows:
        assert 0.0 <= row.raw <= 1.0
        assert 0.0 <= row.whitened <= 1.0
    shown = list(layer_rows(rows))
    assert shown[1]["layer"] == "1"
    assert shown[1]["nDCG@10 raw"] == f"{rows[1].raw:.4f}"


def test_quality_is_that_of_a_ranking_by_hand(collection, model, states):
    rows = collection_layers(collection, progress=Silent(), model=model)
    queries = open_states(TransformerSpec(model)).pooled_states(["river", "money of my account"])
    ids = ["d0", "d1", "d2", "d3", "d4", "d6"]
    gains = [{"d0": 1}, {"d1": 2, "d2": 1, "gone": 1}]
    for row in rows:
        scores = unit(queries[row.layer]) @ unit(states[row.layer]).T
        found = []
        for score, gain in zip(scores, gains, strict=True):
            order = np.argsort(-score)
            gained = sum(gain.get(ids[place], 0) / np.log2(rank + 2) for rank, place in enumerate(order))
            best = sum(value / np.log2(rank + 2) for rank, value in enumerate(sorted(gain.values(), reverse=True)))
            found.append(gained / best)
        assert row.raw == pytest.approx(np.mean(found), abs=1e-4)


def test_without_judgements_nothing_is_said_of_quality(collection, model):
    rows = collection_layers(collection, progress=Silent(), model=model, split="train", limit=3)
    assert {row.raw for row in rows} == {None}
    assert {row["nDCG@10 raw"] for row in layer_rows(rows)} == {"-"}


def test_no_text_at_all_is_refused(collection, model):
    empty = replace(collection, read=lambda _log: iter([Document("d", " ")]))
    with pytest.raises(DiagnosisError, match="tiny has no text to look at"):
        collection_layers(empty, progress=Silent(), model=model)
    with pytest.raises(DiagnosisError, match=r"needs documents and judged queries \(test\)"):
        collection_portability(empty, progress=Silent(), model=model)
    with pytest.raises(DiagnosisError, match=r"needs documents and judged queries \(dev\)"):
        collection_portability(collection, progress=Silent(), model=model, split="dev")


def test_queries_of_every_layer_are_asked_of_the_last(collection, model, tiny_transformers):
    other = str(tiny_transformers["masked"])
    found = collection_portability(collection, progress=Silent(), model=model, other_model=other)
    spaces = [*found.layers, found.unwhitened, found.other]
    assert [space.name for space in spaces][:3] == ["layer 0", "layer 1", "layer 2"]
    assert found.other.name == other
    for space in spaces:
        asked = space.asked
        assert (asked.documents, asked.queries, asked.k) == (6, 2, 10)
        # Ten hits of six documents: all are found, whatever the vectors.
        assert (space.own, asked.home, asked.foreign, asked.chance) == (1.0, 1.0, 1.0, 1.0)
        assert [each.texts for each in asked.mapped] == [6]
    rows = list(portability_rows(found))
    assert rows[0] == {"queries from": "layer 0", "at home": "1.000", "as they are": "1.000", "map on 6": "1.000"}
    assert len(rows) == 5
    assert "documents: 6, in layer 2 of" in next(iter(portability_notes(found)))


def test_a_map_on_all_texts_brings_recall_among_many_documents_back(model, tmp_path):
    words = [*{word: None for text in TEXTS for word in text.split()}]
    chooser = np.random.default_rng(1)
    documents = [Document(f"d{number}", " ".join(chooser.choice(words, 8))) for number in range(300)]
    queries = {f"q{number}": Query(f"q{number}", documents[number].text) for number in range(40)}
    qrels = {"test": {query: {f"d{query[1:]}": 1} for query in queries}}
    collection = Collection("own", "test", lambda _log: iter(documents), queries, qrels)
    found = collection_portability(collection, progress=Silent(), model=model)
    for space in found.layers[:-1]:
        assert space.own == space.asked.home == 1.0
        assert space.asked.chance == pytest.approx(10 / 300)
        assert space.asked.foreign < 1.0
        assert space.asked.mapped[-1].recall > space.asked.foreign
    last = found.layers[-1].asked
    assert (last.foreign, last.mapped[-1].recall) == (1.0, 1.0)
    assert found.unwhitened.asked.foreign < found.unwhitened.asked.mapped[-1].recall
    plot_portability(found, tmp_path / "map.svg")
    assert "a random order" in (tmp_path / "map.svg").read_text(encoding="utf-8")
