"""Similarity of texts: correlations by hand, and the published figure of STS-B."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from corpora.catalog import open_collection
from corpora.progress import Silent
from indexer.contextual.elmo_layers import ElmoLayers
from indexer.contextual.layer_reader import TransformerLayers
from indexer.contextual.states import open_states
from indexer.contextual.transformer import TransformerSpec, open_transformer
from indexer.static.word_vectors import Word2VecTraining, load_word_vectors
from indexer.vectors import normalize
from indexer.whitening_spec import WhiteningSpec
from search.diagnostics.layer_models import open_layer_model
from search.diagnostics.similarity_candidates import averaging, open_candidates, trained
from search.diagnostics.similarity_files import TextPair, distinct_texts, read_text_pairs
from search.diagnostics.text_similarity import Candidates, correlation, evaluate_similarity, similarity_rows
from search.diagnostics.word_similarity import word_pairs, word_similarity
from search.errors import DiagnosisError

ROOT = Path(__file__).resolve().parents[3]


class Table:
    """An encoder of given vectors; a text that is not among them is zeros."""

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts):
        rows = [self.vectors.get(text, np.zeros(2)) for text in texts]
        return normalize(np.array(rows, dtype=np.float32))


VECTORS = {"a": [1, 0], "b": [1, 1], "c": [0, 1], "d": [-1, 0.5], "e": [0.3, 1]}
PAIRS = [TextPair("a", "b", 3.0), TextPair("a", "c", 1.0), TextPair("a", "a", 2.0), TextPair("a", "zzz", 9.0)]


def test_spearman_by_hand_leaves_out_what_has_no_vector():
    found = evaluate_similarity(PAIRS, Candidates(static=Table(VECTORS), static_name="table"))
    # cosines .707, 0, 1 against 3, 1, 2: ranks 2 1 3 and 3 1 2, rho = 1 - 6 * 2 / 24
    assert found.static.raw.spearman == pytest.approx(0.5)
    assert (found.static.covered, found.pairs, found.layers, found.output) == (3, 4, (), None)
    assert found.static.whitened is None
    assert "nothing is whitened" in found.notes[0]
    assert [row.name for row in found.rows] == ["table"]
    assert list(similarity_rows(found)) == [{"": "table", "raw": "0.5000", "95% interval": "-", "pairs": "3"}]


def test_the_interval_is_fishers_with_the_variance_for_ranks(rng):
    cosines, scores = rng.normal(size=(2, 103))
    found = correlation(cosines, scores)
    rho = spearmanr(cosines, scores).statistic
    assert found.spearman == pytest.approx(rho, abs=1e-12)
    half = 1.959964 * math.sqrt((1 + rho**2 / 2) / 100)
    assert math.atanh(found.high) - math.atanh(rho) == pytest.approx(half)
    assert math.atanh(rho) - math.atanh(found.low) == pytest.approx(half)


def test_no_number_where_there_is_none():
    same = [TextPair("a", "b", 1.0), TextPair("a", "c", 1.0)]
    found = evaluate_similarity(same, Candidates(static=Table(VECTORS)), statistics=["a", "b", "c"])
    assert found.static.raw == (None, None, None)
    unknown = evaluate_similarity([TextPair("x", "y", 1.0), TextPair("y", "z", 2.0)], Candidates(static=Table({})))
    assert (unknown.static.raw.spearman, unknown.static.covered) == (None, 0)
    json.dumps(unknown.as_json(), allow_nan=False)
    with pytest.raises(DiagnosisError, match="two or more"):
        evaluate_similarity(PAIRS[:1], Candidates())


def test_whitening_takes_its_statistics_from_the_other_texts_alone(rng):
    known = {f"k{number}": vector for number, vector in enumerate(rng.normal([5, 0], [3, 0.2], size=(200, 2)))}
    table = Table({**VECTORS, **known})
    spec = WhiteningSpec.parse("0")
    found = evaluate_similarity(PAIRS[:3], Candidates(static=table), statistics=list(known), whitening=spec).static
    # Textbook whitening by hand: of the unit vectors of the statistics' texts, by their covariance.
    units = table.encode(list(known)).astype(np.float64)
    values, directions = np.linalg.eigh(np.cov(units.T, bias=True))
    white = {text: (table.encode([text])[0] - units.mean(0)) @ directions / np.sqrt(values) for text in "abc"}
    cosines = [
        white[p.first] @ white[p.second] / np.linalg.norm(white[p.first]) / np.linalg.norm(white[p.second])
        for p in PAIRS[:3]
    ]
    assert found.whitened.spearman == pytest.approx(spearmanr(cosines, [p.score for p in PAIRS[:3]]).statistic)
    # Other statistics, other whitening; the texts asked about have no say.
    more = [TextPair("d", "e", 1.0), *PAIRS[:3]]
    other = evaluate_similarity(more, Candidates(static=table), statistics=list(known), whitening=spec)
    assert other.statistics == 200


def test_layers_and_output_are_those_of_the_model(tiny_transformers):
    spec = TransformerSpec(model=str(tiny_transformers["plain"]))
    texts = ["the river bank", "my bank account", "a boat on the water", "money", "loan of money"]
    pairs = [TextPair(texts[0], other, score) for other, score in zip(texts[1:], (1.0, 4.0, 2.0, 3.0), strict=True)]
    reader = TransformerLayers(open_states(spec))
    found = evaluate_similarity(
        pairs,
        Candidates(layers=reader, output=open_transformer(spec)),
        statistics=texts,
        whitening=WhiteningSpec.parse("0.5"),
    )
    assert [row.layer for row in found.layers] == [0, 1, 2]
    states = normalize(reader.layer_states(texts)[1])
    assert found.layers[1].raw.spearman == pytest.approx(spearmanr(states[1:] @ states[0], (1, 4, 2, 3)).statistic)
    # The output of a model without modules is the mean over its last layer.
    assert found.output.raw.spearman == pytest.approx(found.layers[2].raw.spearman)
    shown = found.as_json()
    assert shown["layers"][1]["layer"] == 1
    assert {"raw", "whitened", "covered"} <= set(shown["output"])


def test_elmo_is_read_by_its_files(shared_data):
    folder = shared_data / "elmo" / "allennlp"
    candidates = open_candidates(["a"], progress=Silent(), model=str(folder))
    assert isinstance(candidates.layers, ElmoLayers)
    pairs = [TextPair("the river bank", "a boat", 3.0), TextPair("money", "a loan", 4.0), TextPair("money", "a", 1.0)]
    found = evaluate_similarity(pairs, candidates)
    assert [row.name for row in found.rows] == [
        "glove-6b-50d",
        "layer 0",
        "layer 1",
        "layer 2",
        "allennlp, layers mixed",
    ]
    assert isinstance(open_layer_model(str(folder)), ElmoLayers)


@pytest.mark.real_model
@pytest.mark.parametrize(("name", "expected"), [("wordsim353", 0.5033), ("simlex999", 0.2646)])
def test_words_of_a_table_score_as_by_plain_look_up(name, expected):
    vectors = load_word_vectors("glove")
    pairs = read_text_pairs(name)
    found = evaluate_similarity(pairs, Candidates(static=averaging(vectors, distinct_texts(pairs)))).static
    assert found.raw.spearman == pytest.approx(expected, abs=2e-3)
    assert found.raw.spearman == pytest.approx(word_similarity(vectors, word_pairs(name)).spearman, abs=2e-3)


def test_word2vec_without_a_corpus_says_what_it_needs():
    with pytest.raises(DiagnosisError, match="--corpus COLLECTION"):
        open_candidates(["a"], progress=Silent(), static="word2vec", only_static=True)


def ranked(name, vectors):
    pairs = read_text_pairs(name)
    return evaluate_similarity(pairs, Candidates(static=averaging(vectors, distinct_texts(pairs)))).static


def test_word2vec_of_fifteen_passes_over_news_ranks_words_better_than_chance():
    short = Word2VecTraining(dimension=50, epochs=15)
    found = ranked("wordsim353", trained(open_collection("lee"), Silent(), short))
    assert found.covered == 143
    # Rounding differs between processors and grows with each pass.
    assert found.raw.spearman == pytest.approx(0.264, abs=0.05)
    assert found.raw.low > 0.0  # p < .05


@pytest.mark.slow
def test_word2vec_trained_on_news_as_it_is_by_default_ranks_both_sets_better_than_chance():
    vectors = trained(open_collection("lee"), Silent())
    for name, covered, expected in (("wordsim353", 143, 0.292), ("simlex999", 256, 0.177)):
        found = ranked(name, vectors)
        assert found.covered == covered
        assert found.raw.spearman == pytest.approx(expected, abs=0.05)
        assert found.raw.low > 0.0


@pytest.mark.slow
def test_word2vec_scores_the_same_to_the_last_digit_in_two_processes():
    command = [sys.executable, "-m", "cli", "evaluate-similarity", "wordsim353", "--only-static", "--json"]
    command += ["--static", "word2vec", "--corpus", "lee"]
    runs = [
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, cwd=ROOT, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert json.loads(runs[0])["static"]["covered"] == 143


@pytest.mark.slow
@pytest.mark.real_model
def test_sts_benchmark_as_published(shared_data):
    pairs, dev = (read_text_pairs(shared_data / "stsb" / f"{name}.tsv") for name in ("test", "dev"))
    statistics = distinct_texts(dev)
    candidates = open_candidates([*distinct_texts(pairs), *statistics], progress=Silent())
    found = evaluate_similarity(pairs, candidates, statistics=statistics)
    # Published for all-MiniLM-L6-v2: 82.03.
    assert found.output.raw.spearman == pytest.approx(0.8203, abs=0.005)
    assert found.output.raw.spearman == pytest.approx(found.layers[6].raw.spearman, abs=1e-4)
    assert all(row.covered == 1379 for row in found.rows)
    assert all(row.whitened.spearman > row.raw.spearman for row in [found.static, *found.layers[:6]])
