"""One question side by side: what is shown beside each score."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from corpora.progress import Silent
from indexer.cosine_background import CosineBackground
from indexer.opening import open_index
from search.asking import ask
from search.measuring import measure_index
from search.presentation.terminal import comparison_view
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]
WORDS = ("river", "water", "bank", "money", "loan", "boat")


@pytest.fixture
def texts(rng: np.random.Generator) -> list[str]:
    return [" ".join(rng.choice(WORDS, size=3, replace=False)) for _ in range(30)]


def test_a_score_is_placed_among_those_of_random_pairs(build: Build, texts: list[str]) -> None:
    root = build(texts)
    searcher = Searcher.open(root)
    asked = ask(searcher, "river boat", k=5)
    parts = searcher.index.vectors("static")
    units = parts.store.reconstruct(np.arange(searcher.index.manifest.texts))
    cosines = (units @ units.T)[np.triu_indices(len(units), 1)]
    answer = asked.to_json()["retrievers"]
    for hit in answer["static"]["hits"]:
        lower = 100.0 * np.mean(cosines < hit["score"] - 1e-6)
        upper = 100.0 * np.mean(cosines <= hit["score"] + 1e-6)
        assert lower - 3.0 <= hit["percentile"] <= upper + 3.0
    # BM25 scores and sums of reciprocal ranks are no cosines.
    assert all("percentile" not in hit for name in ("bm25", "hybrid") for hit in answer[name]["hits"])
    assert asked.percentile("bm25", 1.0) is None
    searcher.close()


def test_the_background_is_kept_in_the_index_and_small(build: Build, texts: list[str]) -> None:
    opened = open_index(build(texts))
    kept = opened.checks["retrievers"]["static"]["random_cosines"]
    assert len(json.dumps(kept)) < 1000
    assert opened.cosine_background("static") == CosineBackground(tuple(kept))
    assert opened.cosine_background("bm25") is None


@pytest.mark.parametrize("damage", [None, [0.1, 0.2]])
def test_an_index_without_one_shows_none(build: Build, texts: list[str], damage: object) -> None:
    root = build(texts)
    path = open_index(root).generation.checks
    checks = json.loads(path.read_text())
    checks["retrievers"]["static"]["random_cosines"] = damage
    searcher = Searcher.open(root)
    searcher.index.__dict__["checks"] = checks
    asked = ask(searcher, "river", k=2)
    assert all("percentile" not in hit for hit in asked.to_json()["retrievers"]["static"]["hits"])
    assert "percentile" not in _shown(asked)
    searcher.close()


def _shown(asked: object, **options: object) -> str:
    console = Console(width=140, **options)  # type: ignore[arg-type]
    with console.capture() as capture:
        console.print(comparison_view(asked))  # type: ignore[arg-type]
    return capture.get()


def test_decisive_words_are_in_the_answer_and_underlined_on_a_terminal(build: Build) -> None:
    far = "money loan " * 40
    searcher = Searcher.open(build([f"{far} the Rivers rose {far}", "money", "loan money"]))
    asked = ask(searcher, "river water", k=2)
    hits = asked.to_json()["retrievers"]
    assert hits["bm25"]["hits"][0]["decisive"] == ["rivers"]
    assert isinstance(hits["static"]["hits"][0]["decisive"], list)
    plain = _shown(asked)
    assert "the Rivers rose" in plain, "the snippet lies around the word"
    assert "\x1b" not in plain
    coloured = _shown(asked, force_terminal=True, color_system="standard")
    assert re.search(r"\x1b\[1;4[0-9;]*mRivers\x1b\[0m", coloured), "bold and underlined"
    assert "percentile" in plain
    searcher.close()


def test_contextual_retrievers_name_no_words(build: Build, tiny_transformers: dict[str, Path]) -> None:
    root = build(
        ["the river bank", "my money"], retrievers=f"contextual:model={tiny_transformers['plain']},precision=fp32"
    )
    searcher = Searcher.open(root)
    hit = ask(searcher, "river", k=1).to_json()["retrievers"]["contextual"]["hits"][0]
    assert "decisive" not in hit
    assert 0.0 <= hit["percentile"] <= 100.0
    searcher.close()


def test_a_query_that_is_a_document_does_not_find_itself_and_that_is_said(build: Build) -> None:
    root = build(
        ["river water", "river boat", "money"],
        queries={"d0": "river water"},
        qrels={"d0": {"d0": 1, "d1": 1}},
        exclude_same_id=True,
    )
    searcher = Searcher.open(root)
    asked = ask(searcher, "", query_id="d0", k=3)
    for answer in asked.comparison.answers.values():
        assert "d0" not in {hit.doc_id for hit in answer.hits}
    assert "document d0 is the query itself and left out" in asked.notes
    evaluation, _ = measure_index(searcher, progress=Silent(), measures="RR")
    assert any("query's own id is left out" in note for note in evaluation.notes())
    assert evaluation.rows["static"].measures["RR"] == 1.0
    searcher.close()
