"""What a retriever costs, beside how good it is: milliseconds, bytes, seconds, money."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from search.ranking import QueryCost

_SECONDS_PER_HOUR = 3600.0
_MILLION = 1_000_000


class Milliseconds(NamedTuple):
    """How long something took, over queries: percentiles and mean, in milliseconds."""

    p50: float
    p95: float
    p99: float
    mean: float


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What building a retriever's index took, over all builds that did it; None where it was not measured.

    `bytes_per_text` is what is stored for a text, `tokens` what is read of all of them, `multiply_adds_per_text` the
    arithmetic of encoding one, in the mean; `search_recall` is recall@10 of the vector search against exact search, 1
    where it is exact, and `approximation` the kind of vector index where it is not.
    """

    seconds: float | None = None
    bytes_per_text: float | None = None
    texts: int | None = None
    tokens: int | None = None
    peak_memory_bytes: int | None = None
    multiply_adds_per_text: float | None = None
    search_recall: float | None = None
    approximation: str = ""


@dataclass(frozen=True, slots=True)
class RetrieverCost:
    """What a retriever costs: to build, and per query. Timings carry the number of queries behind them."""

    index: IndexCost = IndexCost()
    encode: Milliseconds | None = None
    search: Milliseconds | None = None
    query: Milliseconds | None = None
    timed_queries: int = 0
    price_per_hour: float | None = None

    @property
    def money_per_million_texts(self) -> float | None:
        """The price of indexing a million texts, in the currency of the price per hour."""
        if self.price_per_hour is None or self.index.seconds is None or not self.index.texts:
            return None
        return self.price_per_hour * self.index.seconds / self.index.texts * _MILLION / _SECONDS_PER_HOUR

    @property
    def money_per_million_queries(self) -> float | None:
        """The price of a million queries one after another: of their mean time, since times add up."""
        if self.price_per_hour is None or self.query is None:
            return None
        return self.price_per_hour * self.query.mean / 1000 * _MILLION / _SECONDS_PER_HOUR

    def to_json(self) -> dict[str, Any]:
        """Return the costs that are known, by flat names that say their units."""
        values: dict[str, Any] = {}
        for name, times in (("encode", self.encode), ("search", self.search), ("query", self.query)):
            if times is not None:
                values |= {
                    f"{name}_ms_p50": times.p50,
                    f"{name}_ms_p95": times.p95,
                    f"{name}_ms_p99": times.p99,
                }
        values |= {
            "timed_queries": self.timed_queries,
            "bytes_per_text": self.index.bytes_per_text,
            "index_seconds": self.index.seconds,
            "peak_memory_bytes": self.index.peak_memory_bytes,
            "tokens": self.index.tokens,
            "multiply_adds_per_text": self.index.multiply_adds_per_text,
            "search_recall@10": self.index.search_recall,
            "approximation": self.index.approximation or None,
            "money_per_million_texts": self.money_per_million_texts,
            "money_per_million_queries": self.money_per_million_queries,
        }
        optional = {
            "multiply_adds_per_text",
            "money_per_million_texts",
            "money_per_million_queries",
            "tokens",
            "search_recall@10",
            "approximation",
        }
        return {name: value for name, value in values.items() if value is not None or name not in optional}


def engineering(value: float | None) -> str:
    """Return a count with three digits and the letter of its thousands: 5.31 G; `-` for None."""
    if value is None:
        return "-"
    for letter in ("", " k", " M", " G"):
        if value < 999.5:
            return f"{value:.3g}{letter}"
        value /= 1000
    return f"{value:,.3g} T"


def milliseconds(times: Iterable[float]) -> Milliseconds | None:
    """Return percentiles (linear between ranks) and the mean of times in milliseconds; None for none."""
    values = np.fromiter(times, dtype=np.float64)
    if not len(values):
        return None
    p50, p95, p99 = np.percentile(values, (50, 95, 99))
    return Milliseconds(float(p50), float(p95), float(p99), float(values.mean()))


def retriever_cost(
    queries: Iterable[QueryCost] = (), index: IndexCost | None = None, *, price_per_hour: float | None = None
) -> RetrieverCost:
    """Return a retriever's cost from what each query took and what its index took.

    Parameters
    ----------
    queries
        A cost for each timed query.
    index
        What the index took, where known.
    price_per_hour
        What the machine costs, in any currency.

    Raises
    ------
    ValueError
        If the price is negative.
    """
    if price_per_hour is not None and not 0 <= price_per_hour < float("inf"):
        message = f"a price per hour of {price_per_hour}: give a number from 0 up"
        raise ValueError(message)
    timed = list(queries)
    return RetrieverCost(
        index or IndexCost(),
        milliseconds(cost.encode_ms for cost in timed),
        milliseconds(cost.search_ms for cost in timed),
        milliseconds(cost.encode_ms + cost.search_ms for cost in timed),
        len(timed),
        price_per_hour,
    )
