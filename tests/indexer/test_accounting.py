"""What an index says that it cost, after one build and after updates."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document
from indexer.arithmetic import TransformerShape
from indexer.encoded import EncodedTexts
from indexer.opening import open_index
from indexer.stores.documents import text_digest
from search.measuring import index_cost
from search.presentation.summaries import cost_rows
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]
TEXTS = ["river bank zebra", "money loan", "boat boat", "water"]


def _cost(root: Path, name: str) -> Mapping[str, float]:
    found: Mapping[str, float] = open_index(root).cost[name]
    return found


def test_known_words_are_counted_and_nothing_else(build: Build) -> None:
    cost = _cost(build(TEXTS), "static")
    # zebra has no vector: 2 + 2 + 2 + 1 words, each added up in four dimensions.
    assert (cost["texts"], cost["tokens"], cost["multiply_adds"]) == (4, 7, 28)
    bm25 = _cost(build(TEXTS), "bm25")
    assert bm25["multiply_adds"] is None


def test_an_update_counts_all_texts_and_keeps_what_earlier_builds_took(build: Build) -> None:
    first = _cost(build([*TEXTS, *(f"river {n}" for n in range(30))], retrievers=""), "static")
    texts = [*TEXTS[:2], "boat water river", *(f"river {n}" for n in range(30))]
    root = build([Document(f"x{n}", text) for n, text in enumerate(texts)])
    after = _cost(root, "static")
    assert (after["texts"], after["tokens"]) == (33, 2 + 2 + 3 + 30)
    assert after["multiply_adds"] == 4 * after["tokens"]
    assert first["reused_seconds"] == 0.0
    # 32 of 34 texts were taken over, with the table they were averaged from.
    whole = first["seconds"] - first["encoder_seconds"]
    assert after["reused_seconds"] == pytest.approx(first["encoder_seconds"] + whole * 32 / 34)
    searcher = Searcher.open(root)
    assert index_cost(searcher, "static").seconds == pytest.approx(after["seconds"] + after["reused_seconds"])
    assert index_cost(searcher, "static").multiply_adds_per_text == pytest.approx(4 * 37 / 33)
    hybrid = index_cost(searcher, "hybrid")
    assert hybrid.multiply_adds_per_text == index_cost(searcher, "static").multiply_adds_per_text
    searcher.close()
    row = next(row for row in cost_rows(open_index(root).cost) if row["retriever"] == "static")
    assert row["by earlier builds"] == f"{after['reused_seconds']:.1f}"
    assert row["texts/s"] == f"{33 / (after['seconds'] + after['reused_seconds']):,.0f}"


def test_a_lexical_update_counts_all_documents(build: Build) -> None:
    texts = [f"river {number}" for number in range(40)]
    first = _cost(build(texts, retrievers="bm25"), "bm25")
    root = build([*texts, "boat"], retrievers="bm25")
    after = _cost(root, "bm25")
    assert after["texts"] == 41
    assert after["reused_seconds"] == pytest.approx(first["seconds"])


def test_an_index_of_an_earlier_version_still_opens(build: Build) -> None:
    root = build(TEXTS)
    path = open_index(root).generation.cost
    new = {"reused_seconds", "encoder_seconds", "multiply_adds"}
    costs = {
        name: {key: value for key, value in cost.items() if key not in new}
        for name, cost in json.loads(path.read_text()).items()
    }
    path.write_text(json.dumps(costs))
    searcher = Searcher.open(root)
    cost = index_cost(searcher, "static")
    assert cost.multiply_adds_per_text is None
    assert cost.seconds == costs["static"]["seconds"]
    assert cost_rows(searcher.index.cost)[-1]["multiply-adds/text"] == "-"
    searcher.close()
    # The next build counts anew what that one did not.
    assert _cost(build([*TEXTS, "river"]), "static")["multiply_adds"] == 4 * 8


def test_pieces_after_cutting_are_counted_whoever_encoded_them(
    build: Build, tiny_transformers: Mapping[str, Path]
) -> None:
    retrievers = f"contextual:model={tiny_transformers['plain']},precision=fp32"
    texts = ["the river bank", "money", "my boat is empty"]
    first = _cost(build(texts, retrievers=retrievers), "contextual")
    shape = TransformerShape(2, 16, 32)
    # Every word is a piece of this vocabulary, and two marks are read with each text.
    assert first["tokens"] == 5 + 3 + 6
    assert first["multiply_adds"] == shape.multiply_adds([5, 3, 6])
    assert first["reused_seconds"] == 0.0
    root = build([*texts[1:], "a loan"], retrievers=retrievers)
    after = _cost(root, "contextual")
    assert after["tokens"] == 3 + 6 + 4
    assert after["multiply_adds"] == shape.multiply_adds([3, 6, 4])
    # Making the encoder took most of the first build, and was not done again.
    assert after["reused_seconds"] > 0.5 * first["seconds"] > after["seconds"]
    long = " ".join(np.random.default_rng(0).choice(["the", "river", "bank", "boat", "fish"], 400))
    cut = _cost(build([*texts[1:], "a loan", long], retrievers=retrievers), "contextual")
    assert cut["tokens"] > after["tokens"] + 400, "a long text is read as several passages"


def test_tokens_and_seconds_stay_with_the_vectors(tmp_path: Path) -> None:
    digests = np.frombuffer(b"".join(text_digest(str(number)) for number in range(4)), dtype="V16")
    held = EncodedTexts(tmp_path, 3)
    held.add(digests[:3], np.ones((3, 3), np.float32), np.array([1, 3, 4], np.int32), 2.0)
    assert held.tokens(digests[[2, 0]]).tolist() == [4, 1]
    assert held.earlier_seconds(digests[:3]) == 0.0, "this run's own work is not an earlier one's"
    again = EncodedTexts(tmp_path, 3)
    assert again.earlier_seconds(digests) == pytest.approx(2.0)
    assert again.earlier_seconds(digests[[1]]) == pytest.approx(2.0 * 3 / 8)
    again.add(digests[3:], np.ones((1, 3), np.float32), np.array([7], np.int32), 5.0)
    assert again.earlier_seconds(digests) == pytest.approx(2.0)
    again.keep_only(digests[1:])
    assert again.tokens(digests[1:]).tolist() == [3, 4, 7]
    assert EncodedTexts(tmp_path, 3).earlier_seconds(digests[1:]) == pytest.approx(2.0 * 7 / 8 + 5.0)


def test_blocks_of_an_earlier_version_are_read_without_counts(tmp_path: Path) -> None:
    digests = np.frombuffer(text_digest("a"), dtype="V16")
    raw = np.frombuffer(digests.tobytes(), np.uint8).reshape(-1, 16)
    np.savez(tmp_path / "block-000001.npz", digests=raw, vectors=np.ones((1, 3), np.float32))
    held = EncodedTexts(tmp_path, 3)
    assert held.tokens(digests).tolist() == [-1]
    assert held.earlier_seconds(digests) == 0.0
    assert held.gather(digests).tolist() == [[1.0, 1.0, 1.0]]
