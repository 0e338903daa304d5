"""Models that are loaded or converted once for all tests of contextual encoders."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from corpora.builtin.lee import open_lee
from corpora.progress import Silent
from indexer.contextual.compiled import CompiledEncoder
from indexer.contextual.conversion import Precision, PrecisionGate, compile_encoder
from indexer.contextual.transformer import TransformerEncoder, TransformerSpec, open_transformer


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep OpenVINO's compile cache out of the user's folder."""
    before = os.environ.get("TWINDEX_CACHE")
    os.environ["TWINDEX_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TWINDEX_CACHE"]
    else:
        os.environ["TWINDEX_CACHE"] = before


@pytest.fixture(scope="session")
def news() -> Sequence[str]:
    """First sentences and beginnings of the Lee background news: 160 texts of 10 to 90 pieces."""
    texts = [document.searchable_text for document in open_lee().background()]
    return [*(text.split(". ")[0] for text in texts[:100]), *(text[:300] for text in texts[100:160])]


@pytest.fixture(scope="session")
def minilm() -> TransformerEncoder:
    """The built-in model, run by torch."""
    return open_transformer(TransformerSpec())


@pytest.fixture(scope="session")
def minilm_int8(
    minilm: TransformerEncoder, news: Sequence[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[CompiledEncoder, PrecisionGate]:
    """The built-in model, compiled to int8, and its gate."""
    folder = tmp_path_factory.mktemp("int8")
    return compile_encoder(minilm, folder, precision=Precision.INT8, calibration=news, progress=Silent())


@pytest.fixture(scope="session")
def tiny(tiny_transformers: dict[str, Path]) -> TransformerEncoder:
    """A random model of 16 dimensions and 2 layers, run by torch."""
    return open_transformer(TransformerSpec(str(tiny_transformers["plain"])))


@pytest.fixture(scope="session")
def tiny_fp32(tiny: TransformerEncoder, tmp_path_factory: pytest.TempPathFactory) -> CompiledEncoder:
    """The random model, compiled to fp32."""
    folder = tmp_path_factory.mktemp("fp32")
    texts = ["the river bank", "a loan"]
    return compile_encoder(tiny, folder, precision=Precision.FP32, calibration=texts, progress=Silent())[0]
