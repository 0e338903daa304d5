"""The retriever notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import SpecError
from indexer.spec import DEFAULT_RETRIEVERS, Family, parse_retriever, parse_retrievers


def test_options_with_commas_belong_to_the_retriever_before_them() -> None:
    specs = parse_retrievers("bm25,l3=contextual:layer=3,pooling=mean,whitened,static:vectors=a.bin,weights=sif")
    assert [(spec.name, spec.family, dict(spec.options)) for spec in specs] == [
        ("bm25", Family.BM25, {}),
        ("l3", Family.CONTEXTUAL, {"layer": "3", "pooling": "mean"}),
        ("whitened", Family.CONTEXTUAL, {"whitening": "auto"}),
        ("static", Family.STATIC, {"vectors": "a.bin", "weights": "sif"}),
    ]


def test_defaults_fill_in_what_a_retriever_takes_and_does_not_set() -> None:
    defaults = {"model": "m", "precision": "bf16", "vectors": "glove", "layer": ""}
    specs = parse_retrievers("bm25,static,contextual:precision=fp32", defaults)
    assert [dict(spec.options) for spec in specs] == [
        {},
        {"vectors": "glove"},
        {"model": "m", "precision": "fp32"},
    ]


def test_the_whitening_option_reaches_the_preset_alone() -> None:
    specs = parse_retrievers("contextual,whitened,w=whitened:layer=2,static", whitening="0.1")
    assert [spec.get("whitening") for spec in specs] == ["", "0.1", "0.1", ""]


def test_the_default_retrievers_parse() -> None:
    names = [spec.name for spec in parse_retrievers(DEFAULT_RETRIEVERS)]
    assert names == ["bm25", "static", "fitted", "contextual", "whitened", "hybrid"]


@pytest.mark.parametrize(
    ("notation", "says"),
    [
        ("", "no retriever was asked for"),
        ("contextal", "did you mean 'contextual'"),
        ("bm25:layer=3", "does not take 'layer=3'"),
        ("contextual:layer", "does not take 'layer'"),
        ("contextual:layer=three", "layer must be a number"),
        ("contextual:layer=-1", "layer must be a number"),
        ("fitted:share=2", "share must be a number from"),
        ("a/b=static", "letters, digits"),
        ("..=static", "letters, digits"),
        ("bm25,bm25", "two retrievers are named 'bm25'"),
        ("hybrid", "fuses bm25\\+contextual"),
        ("bm25,hybrid:members=bm25+static", "fuses bm25\\+static"),
        ("bm25,hybrid:members=bm25+bm25", "fuses bm25\\+bm25"),
        ("static,h=hybrid:members=h+static", "fuses h\\+static"),
    ],
)
def test_a_notation_that_means_nothing_is_refused_in_one_line(notation: str, says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        parse_retrievers(notation)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        specs = parse_retrievers(text)
    except SpecError:
        return
    assert all(spec.name for spec in specs)


@pytest.mark.parametrize("notation", ["bm25", "l3=contextual:layer=3,pooling=mean", "x=static:vectors=a.bin"])
def test_the_canonical_notation_parses_to_the_same_retriever(notation: str) -> None:
    spec = parse_retriever(notation)
    assert parse_retriever(spec.notation()) == spec
