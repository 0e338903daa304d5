"""Measures by name: what each name means, and which program computes it.

Names are ir_measures' own (`nDCG@10`, `AP`, `P(rel=2)@5`); trec_eval's (`ndcg_cut_10`) and what people type
(`mrr@10`, `map`, `recall_100`) lead to them. trec_eval's measures that ir_measures lacks keep their names.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from search.errors import MeasureError

if TYPE_CHECKING:
    import ir_measures

DEFAULT_MEASURES = ("nDCG@10", "RR", "AP", "R@100")

#: Lower-case names that people and trec_eval use -> ir_measures' names.
ALIASES: Mapping[str, str] = {
    "map": "AP",
    "map_cut": "AP",
    "average_precision": "AP",
    "mrr": "RR",
    "recip_rank": "RR",
    "reciprocal_rank": "RR",
    "ndcg_cut": "nDCG",
    "recall": "R",
    "precision": "P",
    "prec": "P",
    "hit": "Success",
    "hits": "Success",
    "hit_rate": "Success",
    "hitrate": "Success",
    "r_precision": "Rprec",
    "r_prec": "Rprec",
    "iprec_at_recall": "IPrec",
    "set_p": "SetP",
    "set_recall": "SetR",
    "set_r": "SetR",
    "set_f": "SetF",
    "f1": "SetF",
    "set_map": "SetAP",
    "set_relative_p": "SetRelP",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_q": "NumQ",
}

_WHOLE = re.compile(r"(?P<name>[^\W\d]\w*)(?P<parameters>\(.*\))?(?:@(?P<at>\d+(?:\.\d+)?))?")
_GLUED = re.compile(r"(?P<name>[^\W\d]\w*?)[_.]?(?P<at>\d+(?:\.\d+)?)")
_COUNTS = frozenset({"NumQ", "NumRel", "NumRet", "NumRelRet", "num_nonrel_judged_ret"})

#: trec_eval's measures that ir_measures does not name.
_TREC = frozenset({"gm_map", "gm_bpref", "11pt_avg", "binG", "G", "Rndcg", "ndcg_rel", "utility"}) | {
    "num_nonrel_judged_ret"
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure that can be computed here.

    Attributes
    ----------
    name
        Its name as ir_measures writes it.
    provider
        The program that computes it: `pytrec_eval`, `judged`, `msmarco`, `compat`, `gdeval`, `accuracy`.
    kind
        The name without parameters.
    definition
        ir_measures' own object; None where pytrec_eval is asked by the name.
    """

    name: str
    provider: str
    kind: str
    definition: "ir_measures.Measure | None" = None

    @property
    def counts(self) -> bool:
        """Whether it is a number of things, to be summed over queries rather than averaged."""
        return self.kind in _COUNTS

    @property
    def geometric(self) -> bool:
        """Whether its scores are logarithms, whose mean is a geometric mean."""
        return self.kind.startswith("gm_")


def split_measures(text: str) -> list[str]:
    """Return the names in a list with commas; those inside parentheses or braces divide nothing."""
    return [name for part in re.split(r",(?![^(]*\))", text) if (name := part.strip())]


def parse_measures(names: str | Iterable[str | Measure]) -> list[Measure]:
    """Return the measures of these names, each once, in order.

    Parameters
    ----------
    names
        A list, or one string with commas.

    Raises
    ------
    MeasureError
        If a name is not known, lacks its cutoff, or has no installed provider.
    """
    wanted = split_measures(names) if isinstance(names, str) else names
    measures = [name if isinstance(name, Measure) else parse_measure(name) for name in wanted]
    return list({measure.name: measure for measure in measures}.values())


@cache
def parse_measure(text: str) -> Measure:
    """Return the measure of one name.

    Raises
    ------
    MeasureError
        If the name is not known, lacks its cutoff, or has no installed provider.
    """
    import ir_measures

    wanted = text.strip()
    if (trec := _read_trec(wanted)) is not None:
        return trec
    registry_name, parameters, at = _read(wanted)
    definition = ir_measures.measures.registry[registry_name](**parameters)
    if at is not None:
        definition = definition @ (int(at) if at.isdigit() and definition.AT_PARAM == "cutoff" else float(at))
    try:
        definition.validate_params()
    except AssertionError as error:
        message = f"measure {wanted!r}: {_complaint(definition, str(error))}"
        raise MeasureError(message) from error
    cutoff = definition.params.get("cutoff")
    if cutoff is not None and cutoff < 1:
        message = f"measure {wanted!r}: the cutoff is a rank, at least 1"
        raise MeasureError(message)
    return Measure(str(definition), _provider(definition, wanted), str(definition.NAME), definition)


def _read_trec(wanted: str) -> Measure | None:
    if wanted in _TREC:
        return Measure(wanted, "pytrec_eval", wanted)
    name, _, at = wanted.replace("@", "_").rpartition("_")
    if name == "relative_P" and at.isdigit() and int(at):
        return Measure(f"{name}_{int(at)}", "pytrec_eval", name)
    if name == "Rprec_mult" and re.fullmatch(r"\d+(\.\d+)?", at) and float(at):
        return Measure(f"{name}_{float(at):.2f}", "pytrec_eval", name)
    return None


def _read(wanted: str) -> tuple[str, dict[str, Any], str | None]:
    names = _names()
    whole = _WHOLE.fullmatch(wanted)
    if whole is not None:
        found = names.get(whole["name"]) or names.get(whole["name"].lower())
        if found is not None:
            return found, _parameters(whole["parameters"], wanted), whole["at"]
    glued = _GLUED.fullmatch(wanted)
    if glued is not None:
        found = names.get(glued["name"]) or names.get(glued["name"].lower())
        if found is not None:
            return found, {}, glued["at"]
    raise MeasureError(_unknown(wanted, whole["name"] if whole is not None else wanted))


@cache
def _names() -> dict[str, str]:
    import ir_measures

    registry = list(ir_measures.measures.registry)
    lowered = {name.lower(): name for name in reversed(registry)}
    return lowered | dict(ALIASES) | {name: name for name in registry}


def _unknown(wanted: str, name: str) -> str:
    stem = re.sub(r"[_.@]?\d+(\.\d+)?$", "", name).lower()
    near = get_close_matches(
        stem, [known for known in _names() if known == known.lower() and known.isascii()], n=3, cutoff=0.6
    )
    at = re.search(r"(\d+)$", wanted)
    suggestions = list(dict.fromkeys(_names()[known] + (f"@{at[1]}" if at else "") for known in near))
    hint = f"near to it: {', '.join(suggestions)}" if suggestions else f"for example {', '.join(DEFAULT_MEASURES)}"
    return f"measure {wanted!r} is not known; {hint}"


def _parameters(text: str | None, wanted: str) -> dict[str, Any]:
    if text is None:
        return {}
    message = f"measure {wanted!r}: parameters are written name=value, as in P(rel=2)@5"
    try:
        call = ast.parse(f"measure{text}", mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(keyword.arg for keyword in call.keywords):
            return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise MeasureError(message) from error
    raise MeasureError(message)


def _complaint(definition: "ir_measures.Measure", complaint: str) -> str:
    if complaint.startswith("unsupported params"):
        taken = ", ".join(definition.SUPPORTED_PARAMS) or "no parameter"
        return f"it takes {taken}, not {complaint.partition('[')[2].rstrip(']')}"
    name, _, value = complaint.removeprefix("invalid param ").partition("=")
    if name not in definition.params:
        example = "@0.1" if name == "recall" else "@10" if name == definition.AT_PARAM else f"({name}=...)"
        return f"a {name} is needed, as in {definition.NAME}{example}"
    return f"{value} is no value for {name}"


def _provider(definition: "ir_measures.Measure", wanted: str) -> str:
    import ir_measures

    able = [provider for provider in ir_measures.DefaultPipeline.providers if provider.supports(definition)]
    for provider in able:
        if provider.is_available():
            return str(provider.NAME)
    if not able:
        message = f"measure {wanted!r}: no provider computes {definition} with these parameters"
        raise MeasureError(message)
    missing = " or ".join(str(provider.NAME) for provider in able)
    message = f"measure {wanted!r} is computed by {missing}, which is not installed: install it, or choose another"
    raise MeasureError(message)
