"""What work cost: seconds, bytes, texts, tokens, memory."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one piece of work; seconds are wall seconds.

    Attributes
    ----------
    seconds, cpu_seconds
        What this build took.
    texts, tokens
        The distinct texts held, and the tokens that are read of them: word pieces after cutting, special ones
        included, or words that a table knows; whichever build encoded them.
    bytes
        On disk.
    peak_memory_bytes
        The process's largest size so far; that of an earlier build where more was taken for what is taken over.
    reused_seconds
        What earlier builds took for what this one took over: encoders, tables, vectors.
    encoder_seconds
        The part of all seconds, reused ones included, that went into making the encoder.
    multiply_adds
        Of encoding all texts; None where there is no such arithmetic, or nobody can count it.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    texts: int = 0
    tokens: int = 0
    bytes: int = 0
    peak_memory_bytes: int = 0
    reused_seconds: float = 0.0
    encoder_seconds: float = 0.0
    multiply_adds: int | None = None

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of both; peaks are the larger one."""
        return Cost(
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.texts + other.texts,
            self.tokens + other.tokens,
            self.bytes + other.bytes,
            max(self.peak_memory_bytes, other.peak_memory_bytes),
            self.reused_seconds + other.reused_seconds,
            self.encoder_seconds + other.encoder_seconds,
            _sum_of_known(self.multiply_adds, other.multiply_adds),
        )


def _sum_of_known(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def peak_memory_bytes() -> int:
    """Return the largest resident size this process has had, in bytes."""
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(slots=True)
class CostMeter:
    """Adds up cost under names."""

    costs: dict[str, Cost] = field(default_factory=dict)

    def add(self, name: str, cost: Cost) -> None:
        """Add a cost under a name."""
        self.costs[name] = self.costs.get(name, Cost()) + cost

    @contextmanager
    def measure(self, name: str, *, texts: int = 0, tokens: int = 0) -> Iterator[None]:
        """Add the time that the block takes under a name."""
        started, cpu = time.perf_counter(), _cpu_seconds()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self.add(name, Cost(seconds, _cpu_seconds() - cpu, texts, tokens, 0, peak_memory_bytes()))


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
