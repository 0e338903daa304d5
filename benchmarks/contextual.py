"""Contextual encoding: ours compiled against sentence-transformers with the same model, in alternating runs."""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.builtin.lee import open_lee
from corpora.catalog import open_collection
from corpora.progress import Silent
from indexer.contextual.checkpoint import find_checkpoint
from indexer.contextual.compiled import CompiledEncoder
from indexer.contextual.conversion import Precision, compile_encoder
from indexer.contextual.runtime import available_cores
from indexer.contextual.transformer import TransformerEncoder, TransformerSpec, open_transformer

ROUNDS = 5
SHORT_TEXTS = 1200
LONG_TEXTS = 200
CALIBRATION_TEXTS = 300


def short_texts() -> list[str]:
    """Return sentences of the Lee background news, about 30 pieces each."""
    texts = (document.searchable_text for document in open_lee().background())
    return [sentence.strip() for text in texts for sentence in text.split(". ") if len(sentence) > 20][:SHORT_TEXTS]


def long_texts(collection: str) -> list[str]:
    """Return abstracts of a BEIR folder, or whole Lee background texts where that is "lee"."""
    if collection == "lee":
        return [document.searchable_text for document in open_lee().background()][:LONG_TEXTS]
    texts = [document.searchable_text for document in open_collection(collection).documents()]
    return texts[:: max(1, len(texts) // LONG_TEXTS)][:LONG_TEXTS]


def compare(collection: str = "lee", *, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return texts per second of both on short and long texts.

    Medians of alternating runs after one warm-up of each; the peer runs in torch fp32 with batches of 32
    and as many threads as there are cores. Both cut at 256 pieces.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(available_cores())
    reference = open_transformer(TransformerSpec())
    peer = SentenceTransformer(str(find_checkpoint(TransformerSpec()).folder), device="cpu")
    texts = {"short": short_texts(), "long": long_texts(collection)}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, precision in (("short", "int8"), ("long", "int8"), ("short", "bf16"), ("long", "bf16")):
            encoder = _compiled(reference, Path(folder) / f"{kind}-{precision}", precision, texts[kind])
            results[f"contextual_{kind}_{precision}"] = _row(encoder, peer, texts[kind], rounds)
    return results


def _compiled(reference: TransformerEncoder, folder: Path, precision: str, texts: Sequence[str]) -> CompiledEncoder:
    folder.mkdir()
    calibration = texts[:: max(1, len(texts) // CALIBRATION_TEXTS)]
    return compile_encoder(
        reference, folder, precision=Precision(precision), calibration=calibration, progress=Silent()
    )[0]


def _row(encoder: CompiledEncoder, peer: Any, texts: list[str], rounds: int) -> dict[str, Any]:
    def mine() -> Any:
        return encoder.encode(texts)

    def theirs() -> Any:
        return peer.encode(texts, batch_size=32, show_progress_bar=False)

    def seconds(encode: Any) -> float:
        started = time.perf_counter()
        encode()
        return time.perf_counter() - started

    cosines = np.einsum("nd,nd->n", mine(), theirs())
    pairs = [(seconds(mine), seconds(theirs)) for _ in range(rounds)]
    ours, peers = (statistics.median(run) for run in zip(*pairs, strict=True))
    return {
        "ratio": statistics.median(peer_seconds / our_seconds for our_seconds, peer_seconds in pairs),
        "ours": len(texts) / ours,
        "peer": len(texts) / peers,
        "unit": "texts/s",
        "texts": len(texts),
        "pieces_per_text": encoder.count_tokens(texts) / len(texts),
        "smallest_cosine": float(cosines.min()),
        "mean_cosine": float(cosines.mean()),
        "rounds": rounds,
        "threads": available_cores(),
    }


if __name__ == "__main__":
    print(compare())
