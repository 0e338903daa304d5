"""What this machine could do at most, and how near each stage comes to it.

`python -m benchmarks.limits [FOLDER]`: multiply-adds a second of large matrix products in int8, bf16 and fp32, through
the same run-time as the encoder; bytes a second of plain reading; and beside them what encoding texts of one length,
the static look-up and the scan of a Flat index reach.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contextual import long_texts
from indexer.arithmetic import TransformerShape
from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.runtime import PRECISION_HINTS, Precision, available_cores

_SIZE = 2048
_ROUNDS = 7
_READ_BYTES = 1 << 29


def measure(collection: str = "lee") -> dict[str, dict[str, Any]]:
    """Return a row for each limit, and for each stage its share of the limit that bounds it."""
    peaks = {precision: matrix_product(precision) for precision in Precision}
    bandwidth = memory_bandwidth()
    rows: dict[str, dict[str, Any]] = {
        f"limit_{precision}": {"ours": peak / 1e9, "unit": "billion multiply-adds/s"}
        for precision, peak in peaks.items()
    }
    rows["limit_memory"] = {"ours": bandwidth / 1e9, "unit": "GB/s read"}
    for precision in (Precision.INT8, Precision.BF16, Precision.FP32):
        rows[f"stage_contextual_{precision}"] = _contextual(precision, peaks[precision], long_texts(collection))
    rows["stage_flat_scan"] = _scan(bandwidth)
    return rows


def matrix_product(precision: Precision) -> float:
    """Return multiply-adds a second of a product of two square matrices, on all cores."""
    import openvino
    from openvino import opset13

    rng = np.random.default_rng(0)
    given = opset13.parameter([_SIZE, _SIZE], np.float32)
    weights = opset13.constant(rng.standard_normal((_SIZE, _SIZE), np.float32))
    left, right = given, weights
    if precision is Precision.INT8:
        left, right = (_quantized(each) for each in (given, weights))
    model = openvino.Model([opset13.matmul(left, right, False, True)], [given])
    settings = {"INFERENCE_PRECISION_HINT": PRECISION_HINTS[precision], "INFERENCE_NUM_THREADS": available_cores()}
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    values = rng.standard_normal((_SIZE, _SIZE), np.float32)
    return _SIZE**3 / _fastest(lambda: request.infer([values], share_inputs=True, share_outputs=True))


def _quantized(node: Any) -> Any:
    """Return a node whose values are rounded to 8 bits, which the run-time turns into int8 arithmetic."""
    from openvino import opset13

    low, high = np.float32(-4.0), np.float32(4.0 * 127 / 128)
    return opset13.fake_quantize(node, low, high, low, high, 256)


def memory_bandwidth() -> float:
    """Return bytes a second of reading a large array from end to end on all cores."""
    from concurrent.futures import ThreadPoolExecutor

    values = np.ones(_READ_BYTES // 4, np.float32)
    cores = available_cores()
    parts = np.array_split(values, cores)
    with ThreadPoolExecutor(cores) as pool:
        return values.nbytes / _fastest(lambda: list(pool.map(np.max, parts)))


def _contextual(precision: Precision, peak: float, texts: list[str]) -> dict[str, Any]:
    """Return the arithmetic of encoding abstracts cut to one length, and its share of the limit."""
    import tempfile
    from pathlib import Path

    from corpora.progress import Silent
    from indexer.contextual.conversion import compile_encoder
    from indexer.contextual.transformer import open_transformer

    reference = open_transformer(TransformerSpec())
    with tempfile.TemporaryDirectory() as folder:
        encoder, _ = compile_encoder(reference, Path(folder), precision=precision, calibration=texts, progress=Silent())
        seconds = _fastest(lambda: encoder.encode(texts), rounds=3)
        lengths = np.array([len(each) for each in encoder.pieces.ids(texts)])
    config = json.loads((find_checkpoint(TransformerSpec()).transformer_folder / "config.json").read_text())
    shape = TransformerShape.of_config(config)
    if shape is None:
        message = "the built-in model is of a kind whose arithmetic is not counted"
        raise RuntimeError(message)
    work = shape.multiply_adds(lengths)
    return {
        "ours": work / seconds / 1e9,
        "unit": "billion multiply-adds/s",
        "of_limit": work / seconds / peak,
        "texts_per_second": len(texts) / seconds,
        "pieces_per_text": float(lengths.mean()),
    }


def _scan(bandwidth: float) -> dict[str, Any]:
    """Return bytes a second that one query over a Flat index of 100,000 vectors reads."""
    from indexer.stores.vector import VectorStore

    vectors = np.random.default_rng(0).standard_normal((100_000, 384), np.float32)
    store = VectorStore.build(iter([vectors]), 384)
    query = vectors[:1].copy()
    seconds = _fastest(lambda: store.search(query, 10))
    read = vectors.nbytes / seconds
    return {"ours": read / 1e9, "unit": "GB/s read", "of_limit": read / bandwidth, "milliseconds": seconds * 1000}


def _fastest(run: Callable[[], object], *, rounds: int = _ROUNDS) -> float:
    """Return the median of the faster half of some runs after one to warm up: a limit is what is undisturbed."""
    run()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(sorted(times)[: (rounds + 1) // 2])


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:2]), indent=1))
