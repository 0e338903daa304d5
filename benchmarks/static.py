"""Static encoding: ours against model2vec with the same GloVe table, in alternating runs."""

import os
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.texts import short_texts
from indexer.static.averaging import averaged
from indexer.static.word_vectors import load_word_vectors

N_TEXTS = 100_000
ROUNDS = 5


def compare(*, n_texts: int = N_TEXTS, rounds: int = ROUNDS) -> dict[str, dict[str, Any]]:
    """Return texts per second of both, medians of alternating runs after one warm-up of each.

    Both read the same texts with the same 400,000 words, uniform weights and unit length. model2vec runs in
    batches of 1,024, with or without its own threads over batches, whichever was faster in a first run.
    """
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    glove = load_word_vectors("glove")
    texts = list(short_texts(n_texts))
    ours = averaged(glove.words, glove.matrix)
    ids = {word: row for row, word in enumerate(glove.words)}
    tokenizer = Tokenizer(models.WordLevel({**ids, "[UNK]": len(ids)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    table = np.vstack([glove.matrix, np.zeros((1, glove.matrix.shape[1]), dtype=np.float32)])
    peer = StaticModel(table, tokenizer, normalize=True)

    def peer_threaded(batch: list[str]) -> Any:
        return peer.encode(batch, use_multiprocessing=True)

    def peer_plain(batch: list[str]) -> Any:
        return peer.encode(batch, use_multiprocessing=False)

    def seconds(encode: Any) -> float:
        started = time.perf_counter()
        encode(texts)
        return time.perf_counter() - started

    agreement = np.einsum("nd,nd->n", ours.encode(texts[:1000]), peer.encode(texts[:1000]))
    seconds(ours.encode)
    peer_encode = min((peer_plain, peer_threaded), key=seconds)
    pairs = [(seconds(ours.encode), seconds(peer_encode)) for _ in range(rounds)]
    mine, theirs = (statistics.median(run) for run in zip(*pairs, strict=True))
    row = {
        "ratio": statistics.median(peer_seconds / our_seconds for our_seconds, peer_seconds in pairs),
        "ours": n_texts / mine,
        "peer": n_texts / theirs,
        "unit": "texts/s",
        "texts": n_texts,
        "words_per_text": statistics.mean(len(text.split()) for text in texts),
        "rounds": rounds,
        "peer_threads": peer_encode is peer_threaded,
        "median_cosine_to_peer": float(np.median(agreement)),
        "threads": os.cpu_count(),
    }
    return {"static": row}


if __name__ == "__main__":
    print(compare())
