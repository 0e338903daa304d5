"""Seeded short texts of natural vocabulary and length, as many as a benchmark needs.

Words come from GloVe's list (most frequent first) with Zipf-Mandelbrot frequencies, p(r) ~ 1 / (r + 2.7)^1.1,
whose head is close to English; a text has 30 words in the mean, log-normal between 4 and 120, with capitals,
commas, full stops and now and then a typographic quotation mark, as a news sentence or two would have.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

_WORDS = 60_000
_BLOCK = 10_000


@cache
def vocabulary() -> tuple[str, ...]:
    """Return words made of letters, and of inner hyphens or apostrophes, most frequent first."""
    from indexer.static.word_vectors import load_word_vectors

    listed = load_word_vectors("glove", limit=2 * _WORDS).words
    good = (word for word in listed if word.replace("-", "").isalpha() and word[0] != "-" and word[-1] != "-")
    return tuple(word for word, _ in zip(good, range(_WORDS), strict=False))


def short_texts(n: int, seed: int = 0) -> Iterator[str]:
    """Yield n texts; the first k are the same for every n of at least k."""
    words = np.array(vocabulary(), dtype=object)
    shares = 1.0 / (np.arange(len(words)) + 2.7) ** 1.1
    cumulative = np.cumsum(shares / shares.sum())
    for start in range(0, n, _BLOCK):
        rng = np.random.default_rng([seed, start])
        lengths = np.clip(rng.lognormal(3.3, 0.45, _BLOCK).astype(int), 4, 120)
        ids = np.searchsorted(cumulative, rng.random(int(lengths.sum())))
        drawn = words[np.minimum(ids, len(words) - 1)]
        commas = rng.random(len(drawn)) < 0.05
        drawn[commas] = drawn[commas] + ","
        quoted = rng.random(_BLOCK) < 0.03
        tokens, begin = drawn.tolist(), 0
        for number in range(min(_BLOCK, n - start)):
            end = begin + int(lengths[number])
            text = " ".join(tokens[begin:end]).rstrip(",")
            text = text[0].upper() + text[1:] + "."
            yield f"“{text}”" if quoted[number] else text
            begin = end
