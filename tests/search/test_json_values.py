import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from search.json_values import json_value


class Pair(NamedTuple):
    word: str
    share: float


class Kind(StrEnum):
    ONE = "one"


@dataclass(frozen=True, slots=True)
class Value:
    pairs: tuple[Pair, ...]
    plain: tuple[int, int]
    by_layer: dict[int, float]
    kind: Kind
    nothing: None = None


def test_every_field_keeps_its_name_and_nan_becomes_null():
    value = Value((Pair("bank", 0.5), Pair("x", float("nan"))), (1, 2), {0: float("inf"), 1: 2.0}, Kind.ONE)
    assert json.loads(json.dumps(json_value(value), allow_nan=False)) == {
        "pairs": [{"word": "bank", "share": 0.5}, {"word": "x", "share": None}],
        "plain": [1, 2],
        "by_layer": {"0": None, "1": 2.0},
        "kind": "one",
        "nothing": None,
    }
    assert json_value(Pair("a", 1.0)) == {"word": "a", "share": 1.0}
    assert json_value([Pair("a", 1.0)]) == [{"word": "a", "share": 1.0}]
