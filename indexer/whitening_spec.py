"""The whitening notation: `auto|none|RANK|E|RANK/E`, parsed once into a typed value."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self, assert_never

from indexer.errors import SpecError


class WhiteningMode(StrEnum):
    """How the strength of a whitening is chosen."""

    AUTO = "auto"
    NONE = "none"
    RANK = "rank"
    SHRINKAGE = "shrinkage"


@dataclass(frozen=True, slots=True)
class WhiteningSpec:
    """A whitening as asked for; e, a as in `indexer.whitening`.

    ==============  ====================================================================
    `auto`          strength from what is measured of the space (`indexer.whitening_strength`)
    `none`          vectors stay as they are
    `128`           an integer from 1 up: the first 128 principal directions, e = 0, a = 1
    `0.1`, `0`      a number from 0 to 1 that is no integer above 0: shrinkage e, all directions, a = 1
                    (`1.0` is e = 1, centring alone; `1` is rank 1)
    `128/0.1`       rank and shrinkage, a = 1
    ==============  ====================================================================
    """

    mode: WhiteningMode = WhiteningMode.AUTO
    rank: int | None = None
    shrinkage: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the notation.

        Raises
        ------
        SpecError
            If the text is none of the forms above.
        """
        given = text.strip().lower()
        if given in {WhiteningMode.AUTO, WhiteningMode.NONE}:
            return cls(WhiteningMode(given))
        first, slash, second = given.partition("/")
        try:
            if slash:
                return cls(WhiteningMode.RANK, _rank(first), _shrinkage(second))
            if first.isdecimal() and int(first) > 0:
                return cls(WhiteningMode.RANK, _rank(first), 0.0)
            return cls(WhiteningMode.SHRINKAGE, None, _shrinkage(first))
        except ValueError:
            message = (
                f"whitening {text!r} is none of: auto, none, a rank (128), a shrinkage from 0 to 1 (0.1),"
                " or both (128/0.1)"
            )
            raise SpecError(message) from None

    def notation(self) -> str:
        """Return the text that parses to this spec."""
        match self.mode:
            case WhiteningMode.AUTO | WhiteningMode.NONE:
                return str(self.mode)
            case WhiteningMode.RANK:
                return f"{self.rank}/{self.shrinkage}" if self.shrinkage else str(self.rank)
            case WhiteningMode.SHRINKAGE:
                return str(self.shrinkage)
            case _ as never:
                assert_never(never)


def _rank(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise ValueError(text)
    return int(text)


def _shrinkage(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(text)
    return value
