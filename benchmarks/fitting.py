"""Fitting word vectors: time and memory for many short texts, and how far a table agrees with its teacher.

`python -m benchmarks.fitting` times the fit alone. `python -m benchmarks.fitting FOLDER...` cuts the documents
of BEIR folders into sentences, encodes them with the contextual encoder, and prints the agreement with it for
tables fitted to 1%, 5%, 20% and all of them. No judgements are read.
"""

import argparse
import json
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.texts import short_texts
from corpora.progress import Silent
from indexer.cost import peak_memory_bytes
from indexer.encoder import Encoder
from indexer.static.averaging import AveragedEncoder, averaged
from indexer.static.distillation import share_rows, static_encoder, word_counts
from indexer.static.fitting import distil_table, fit_table
from indexer.static.weights import count_words
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening, WhiteningSpec

N_TEXTS = 100_000
DIMENSIONS = 384
SHARES = (0.01, 0.05, 0.2, 1.0)
SENTENCES = 60_000
QUERIES = 500
_RANK, _NOISE = 96, 0.5
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def measure(*, n_texts: int = N_TEXTS, dimensions: int = DIMENSIONS) -> dict[str, dict[str, Any]]:
    """Return seconds and memory of one fit, counting words included, contextual vectors given.

    The vectors are a weighted average of hidden word vectors of low rank, and noise of half that length.
    """
    texts = list(short_texts(n_texts))
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    statistics = count_words([texts])
    counts = word_counts([texts], statistics.words)
    counted = time.perf_counter() - started
    idf_weights = statistics.weights(statistics.words)
    words = len(statistics.words)
    hidden = rng.standard_normal((words, _RANK), np.float32) @ rng.standard_normal((_RANK, dimensions), np.float32)
    noise = normalize(rng.standard_normal((n_texts, dimensions), np.float32))
    teacher = normalize(normalize((counts * idf_weights[None, :]).tocsr() @ hidden) + _NOISE * noise)
    prior = normalize(hidden) + normalize(rng.standard_normal((words, dimensions), np.float32))
    del noise, hidden
    cpu = time.process_time()
    fitted = fit_table(counts, teacher, prior=prior, idf_weights=idf_weights)
    row = {
        "ours": fitted.seconds,
        "unit": "s",
        "cpu_seconds": time.process_time() - cpu,
        "counting_seconds": counted,
        "peak_memory_bytes": peak_memory_bytes(),
        "texts": n_texts,
        "words": words,
        "dimensions": dimensions,
        "ridge": fitted.ridge,
        "iterations": fitted.iterations,
        "held_out_cosine": fitted.held_out_cosine,
    }
    return {"fitting": row}


def speed(*, n_texts: int = N_TEXTS, dimensions: int = DIMENSIONS, rounds: int = 5) -> dict[str, dict[str, Any]]:
    """Return texts a second of `fitted` beside `static` at the same dimension, for documents and for single queries.

    Both tables hold the words of the same texts; what is in them does not matter to the time. Alternating runs.
    """
    texts = list(short_texts(n_texts))
    statistics_of_words = count_words([texts])
    words = statistics_of_words.words
    rng = np.random.default_rng(0)
    table = normalize(rng.standard_normal((len(words), dimensions), np.float32))
    weights = statistics_of_words.weights(words)
    static = averaged(list(words), table, weights)
    fitted = static_encoder(words, distil_table(table, weights))
    queries = [" ".join(text.split()[:8]) for text in texts[:2000]]
    return {
        "fitted_documents": _speeds(fitted, static, [texts], rounds),
        "fitted_queries": _speeds(fitted, static, [[query] for query in queries], rounds),
    }


def _speeds(fitted: AveragedEncoder, static: AveragedEncoder, calls: list[list[str]], rounds: int) -> dict[str, Any]:
    def seconds(encoder: AveragedEncoder) -> float:
        started = time.perf_counter()
        for texts in calls:
            encoder.encode(texts)
        return time.perf_counter() - started

    pairs = [(seconds(fitted), seconds(static)) for _ in range(rounds + 1)][1:]
    ours, peers = (median(run) for run in zip(*pairs, strict=True))
    count = sum(map(len, calls))
    return {
        "ratio": median(peer / own for own, peer in pairs),
        "ours": count / ours,
        "peer": count / peers,
        "unit": "texts/s",
        "texts": count,
        "rounds": rounds,
    }


def sentences(folders: Sequence[Path], most: int = SENTENCES) -> list[str]:
    """Return distinct sentences of four words or more of the documents of BEIR folders, in order."""
    found: dict[str, None] = {}
    for folder in folders:
        with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                parts = (record.get("title") or "", *_SENTENCE_END.split(record["text"]))
                found.update((part.strip(), None) for part in parts if len(part.split()) >= 4)
    return list(found)[:most]


def agreement(texts: Sequence[str], encoder: Encoder) -> list[dict[str, Any]]:
    """Return, for each share, how far a table fitted to it ranks texts as the encoder does.

    `QUERIES` of the texts are queries, themselves left out of the answers. `overlap` is the share of the
    encoder's top 10 in the table's top 10, `within_100` in its top 100; `query` the first for table queries
    against contextual vectors.
    """
    statistics = count_words([list(texts)])
    counts = word_counts([list(texts)], statistics.words)
    idf_weights = statistics.weights(statistics.words)
    contextual = encoder.encode(texts)
    alone = encoder.encode(list(statistics.words))
    queries = share_rows(len(texts), min(1.0, QUERIES / len(texts)), seed=1)
    wanted = _top(contextual[queries], contextual, queries, 10)
    rows: list[dict[str, Any]] = []
    for share in (0.0, *SHARES):
        fitted_to = share_rows(len(texts), share or 1.0)
        whitening = Whitening.fit(contextual[fitted_to], WhiteningSpec.parse("auto"))

        def space(vectors: Vectors, whitening: Whitening = whitening) -> Vectors:
            return normalize(whitening.transform(vectors))

        if share:
            teacher = space(contextual[fitted_to])
            fitted = fit_table(counts[fitted_to], teacher, prior=space(alone), idf_weights=idf_weights)
        else:
            fitted = distil_table(space(alone), idf_weights)
        rows.append(_agreement(static_encoder(statistics.words, fitted), texts, queries, wanted, space(contextual)))
        rows[-1] = {"share": share, "seconds": fitted.seconds, "ridge": fitted.ridge, **rows[-1]}
    return rows


def _agreement(
    table: AveragedEncoder,
    texts: Sequence[str],
    queries: NDArray[np.int64],
    wanted: NDArray[np.int64],
    contextual: Vectors,
) -> dict[str, float]:
    vectors = table.encode(texts)
    asked = vectors[queries]
    found = _top(asked, vectors, queries, 100)
    mixed = _top(asked, contextual, queries, 10)
    return {
        "overlap": _shared(wanted, found[:, :10]),
        "within_100": _shared(wanted, found),
        "query": _shared(wanted, mixed),
        "cosine": float(np.einsum("nd,nd->n", vectors, contextual).mean()),
    }


def _top(asked: Vectors, vectors: Vectors, own: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    scores = asked @ vectors.T
    scores[np.arange(len(own)), own] = -np.inf
    best = np.argpartition(-scores, k, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def _shared(wanted: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    return float(np.mean([np.isin(first, second).mean() for first, second in zip(wanted, found, strict=True)]))


def _int8_encoder(folder: Path, calibration: Sequence[str]) -> Encoder:
    from indexer.contextual.conversion import Precision, compile_encoder
    from indexer.contextual.transformer import TransformerSpec, open_transformer

    reference = open_transformer(TransformerSpec())
    encoder, _ = compile_encoder(
        reference, folder, precision=Precision.INT8, calibration=calibration, progress=Silent()
    )
    return encoder


def main() -> None:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="BEIR folders")
    parser.add_argument("--limit", type=int, default=SENTENCES, help="sentences at most")
    given = parser.parse_args()
    if not given.folders:
        print(json.dumps({**measure(), **speed()}, indent=1))
        return
    texts = sentences(given.folders, given.limit)
    with tempfile.TemporaryDirectory() as folder:
        encoder = _int8_encoder(Path(folder), texts[:: max(1, len(texts) // 300)])
        print(json.dumps({"texts": len(texts), "agreement": agreement(texts, encoder)}, indent=1))


if __name__ == "__main__":
    main()
