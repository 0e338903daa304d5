"""The retriever notation: `[NAME=]ENCODER[:option=value,...]`, parsed once into typed values.

    bm25                                    whitened
    layer3=contextual:layer=3,pooling=mean  w64=contextual:whitening=64
    static:vectors=fasttext.bin,weights=sif fused=hybrid:members=bm25+fitted
    e5=contextual:model=DIR,query-prompt="query: "

Several retrievers are separated by commas; an item that sets a known option belongs to the retriever before it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from indexer.errors import SpecError


class Family(StrEnum):
    """How a retriever turns a text into something that can be compared."""

    BM25 = "bm25"
    STATIC = "static"
    FITTED = "fitted"
    DISTILLED = "distilled"
    CONTEXTUAL = "contextual"
    ELMO = "elmo"
    TOKEN_TABLE = "token-table"  # noqa: S105 - no password
    HYBRID = "hybrid"


_MODEL = frozenset({"model", "layer", "pooling", "precision", "backend", "query-prompt", "document-prompt"})
_VECTOR = frozenset({"whitening", "factory"})

#: Which options each family takes.
OPTIONS: Mapping[Family, frozenset[str]] = MappingProxyType(
    {
        Family.BM25: frozenset({"k1", "b"}),
        Family.STATIC: _VECTOR | {"vectors", "weights", "limit", "dimension", "epochs", "architecture"},
        Family.FITTED: _VECTOR | _MODEL | {"share", "ridge", "query", "teacher", "unseen"},
        Family.DISTILLED: _VECTOR | _MODEL,
        Family.CONTEXTUAL: _VECTOR | _MODEL,
        Family.ELMO: _VECTOR | {"model", "layer"},
        Family.TOKEN_TABLE: _VECTOR | {"model"},
        Family.HYBRID: frozenset({"members", "k"}),
    }
)

#: Names that stand for a family with options.
PRESETS: Mapping[str, tuple[Family, Mapping[str, str]]] = MappingProxyType(
    {
        "bm25": (Family.BM25, {}),
        "static": (Family.STATIC, {}),
        "glove": (Family.STATIC, {"vectors": "glove"}),
        "word2vec": (Family.STATIC, {"vectors": "word2vec"}),
        "fasttext": (Family.STATIC, {"vectors": "fasttext"}),
        "fitted": (Family.FITTED, {}),
        "fitted-query": (Family.FITTED, {"query": "contextual"}),
        "distilled": (Family.DISTILLED, {}),
        "contextual": (Family.CONTEXTUAL, {}),
        "whitened": (Family.CONTEXTUAL, {"whitening": "auto"}),
        "elmo": (Family.ELMO, {}),
        "token-table": (Family.TOKEN_TABLE, {}),
        "hybrid": (Family.HYBRID, {}),
    }
)

#: What `vectors` may say besides a file; fastText has no table of its own.
_BUILT_IN_VECTORS = frozenset({"", "glove", "word2vec", "fasttext"})

DEFAULT_RETRIEVERS = "bm25,static,fitted,contextual,whitened,hybrid"
DEFAULT_MEMBERS = ("bm25", "contextual")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_TAKEN = frozenset({"lexical", "judgements", "manifest.json", "checks.json", "cost.json", "documents.sqlite"})
_ALL_OPTIONS = frozenset().union(*OPTIONS.values())


@dataclass(frozen=True, slots=True)
class RetrieverSpec:
    """One retriever as asked for: its name in tables, its family, and the options that were set."""

    name: str
    family: Family
    options: Mapping[str, str] = field(default_factory=dict)

    def get(self, option: str, default: str = "") -> str:
        """Return an option's value, or the default where it was not set."""
        return self.options.get(option, default)

    @property
    def members(self) -> tuple[str, ...]:
        """The retrievers that a hybrid fuses."""
        given = self.get("members")
        return tuple(given.split("+")) if given else DEFAULT_MEMBERS

    def with_defaults(self, defaults: Mapping[str, str]) -> "RetrieverSpec":
        """Return the spec with those defaults that its family takes and that it does not set itself."""
        taken = {key: value for key, value in defaults.items() if value and key in OPTIONS[self.family]}
        options = {**taken, **self.options}
        named = taken.get("vectors", "")
        if options.get("vectors") == "fasttext" and named not in _BUILT_IN_VECTORS:
            options["vectors"] = named  # the preset stands for whatever file is named
        return replace(self, options=options)

    def notation(self) -> str:
        """Return the canonical notation, options in order of name."""
        options = ",".join(f"{key}={_quoted(value)}" for key, value in sorted(self.options.items()))
        return f"{self.name}={self.family}" + (f":{options}" if options else "")


def parse_retriever(notation: str) -> RetrieverSpec:
    """Parse one retriever.

    Raises
    ------
    SpecError
        If the encoder or an option is unknown, or the name cannot serve as a folder's name.
    """
    head, _, tail = notation.strip().partition(":")
    given_name, equals, encoder = head.partition("=")
    encoder = (encoder if equals else head).strip().lower()
    if encoder not in PRESETS:
        near = get_close_matches(encoder, PRESETS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"unknown retriever {encoder!r} in {notation!r}; known: {', '.join(PRESETS)}{hint}"
        raise SpecError(message)
    family, preset = PRESETS[encoder]
    options = {**preset, **_parse_options(tail, family, notation)}
    name = given_name.strip() if equals else encoder
    check_name(name)
    return RetrieverSpec(name, family, options)


def check_name(name: str) -> None:
    """Refuse a retriever's name that cannot name its folder.

    Raises
    ------
    SpecError
        If it has other characters, is too long, or is taken by something else in the index.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.casefold() in _TAKEN:
        message = (
            f"a retriever's name is letters, digits and ._+-, at most 64, and none of {', '.join(sorted(_TAKEN))};"
            f" found {name!r}"
        )
        raise SpecError(message)


def _parse_options(text: str, family: Family, notation: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = item.partition("=")
        key = key.strip().lower().replace("_", "-")
        if not equals or key not in OPTIONS[family]:
            allowed = ", ".join(sorted(OPTIONS[family])) or "none"
            message = f"{family} does not take {item!r} in {notation!r}; its options: {allowed}"
            raise SpecError(message)
        options[key] = _unquoted(value.strip())
    _check_values(options, notation)
    return options


def _unquoted(value: str) -> str:
    """Take off quotation marks, which keep the space at the end of a prompt."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def _quoted(value: str) -> str:
    return f'"{value}"' if value != value.strip() else value


def _check_values(options: Mapping[str, str], notation: str) -> None:
    for key, (kind, low, high) in _NUMBERS.items():
        if key not in options:
            continue
        try:
            value = kind(options[key])
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            message = f"{key} must be a number from {low} to {high}, found {options[key]!r} in {notation!r}"
            raise SpecError(message)


_NUMBERS: Mapping[str, tuple[type[int] | type[float], float, float]] = MappingProxyType(
    {
        "layer": (int, 0, 1000),
        "limit": (int, 1, 10**9),
        "dimension": (int, 1, 4096),
        "epochs": (int, 1, 1000),
        "share": (float, 1e-6, 1.0),
        "ridge": (float, 0.0, 1e9),
        "k1": (float, 0.0, 100.0),
        "b": (float, 0.0, 1.0),
        "k": (float, 0.0, 1e6),
    }
)


def parse_retrievers(
    notations: str | Iterable[str], defaults: Mapping[str, str] | None = None, *, whitening: str = ""
) -> list[RetrieverSpec]:
    """Parse a comma-separated list (or several of them) of retrievers, in order, with defaults filled in.

    Parameters
    ----------
    notations
        Retrievers in the notation above.
    defaults
        Option -> value, for every retriever that takes the option and does not set it.
    whitening
        What the preset `whitened` uses instead of `auto`.

    Raises
    ------
    SpecError
        If nothing is asked for, two retrievers share a name, or a hybrid's member is not among them.
    """
    text = notations if isinstance(notations, str) else ",".join(notations)
    items: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        key = part.partition("=")[0].strip().lower().replace("_", "-")
        continues = "=" in part and key in _ALL_OPTIONS and items and ":" in items[-1]
        if continues:
            items[-1] += f",{part}"
        else:
            items.append(part)
    specs = [parse_retriever(item).with_defaults(defaults or {}) for item in items]
    if whitening:
        specs = [
            replace(spec, options={**spec.options, "whitening": whitening}) if _preset(item) == "whitened" else spec
            for spec, item in zip(specs, items, strict=True)
        ]
    names = [spec.name for spec in specs]
    if not specs:
        message = f"no retriever was asked for; for instance: {DEFAULT_RETRIEVERS}"
        raise SpecError(message)
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        message = f"two retrievers are named {doubled[0]!r}; give one another name: NAME={doubled[0]}"
        raise SpecError(message)
    for spec in specs:
        if spec.family is Family.HYBRID:
            _check_members(spec, specs)
    return specs


def _preset(item: str) -> str:
    head = item.partition(":")[0]
    return head.rpartition("=")[2].strip().lower()


def _check_members(spec: RetrieverSpec, specs: list[RetrieverSpec]) -> None:
    plain = {other.name for other in specs if other.family is not Family.HYBRID}
    missing = [member for member in spec.members if member not in plain]
    if missing or len(set(spec.members)) < 2:
        message = (
            f"{spec.name} fuses {'+'.join(spec.members)}; it needs two or more of the other retrievers"
            f" ({', '.join(sorted(plain)) or 'none given'}): {spec.name}=hybrid:members=A+B"
        )
        raise SpecError(message)
