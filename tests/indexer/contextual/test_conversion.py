import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corpora.progress import Silent
from indexer.contextual import conversion
from indexer.contextual.conversion import Precision, calibration_batches, compile_encoder, gate_sample
from indexer.contextual.runtime import read_model

TEXTS = ["the river bank", "my account is empty", "a loan", "I sat on the bank of the river.", "fish", "boat of water"]


def test_a_precision_that_the_gate_refuses_yields_to_a_finer_one_aloud(tiny, tmp_path):
    told = Silent()
    encoder, gate = compile_encoder(
        tiny, tmp_path, precision=Precision.INT8, calibration=TEXTS, progress=told, bound=0.9999999
    )
    assert gate.asked is Precision.INT8
    assert gate.used is encoder.description.precision is Precision.FP32
    assert [precision for precision, _ in gate.refused] == [Precision.INT8, Precision.BF16]
    assert len(told.notes) == 2
    assert "int8 comes only within cosine" in told.notes[0]
    assert np.abs(encoder.encode(TEXTS) - tiny.encode(TEXTS)).max() < 1e-5


@pytest.mark.real_model
def test_int8_of_the_built_in_model_passes_the_gate(minilm_int8):
    encoder, gate = minilm_int8
    assert (gate.asked, gate.used, gate.refused) == (Precision.INT8, Precision.INT8, ())
    assert gate.smallest_cosine >= 0.985
    assert gate.mean_cosine > 0.996
    assert gate.texts == 64
    assert json.loads(json.dumps(gate.to_json()))["used"] == "int8"
    assert (encoder.folder / "model.bin").stat().st_size < 24_000_000


@pytest.mark.real_model
def test_embedding_tables_are_scaled_after_the_look_up(minilm_int8):
    encoder, _ = minilm_int8
    model = read_model(encoder.folder / "model.xml")
    looked_up = [node.input_value(0).get_node() for node in model.get_ordered_ops() if node.get_type_name() == "Gather"]
    tables = [node for node in looked_up if list(node.get_output_partial_shape(0))[-1:] == [encoder.dimension]]
    assert [(node.get_type_name(), str(node.get_element_type())) for node in tables] == [
        ("Constant", "<Type: 'int8_t'>")
    ] * len(tables)
    assert max(tuple(node.get_output_shape(0)) for node in tables) == (30_522, 384)


def test_scaling_after_the_look_up_gives_the_same_rows():
    import openvino
    from openvino import opset13

    rng = np.random.default_rng(0)
    table, scales = rng.integers(-127, 128, (7, 4)).astype(np.int8), rng.random((7, 1), dtype=np.float32)
    ids = opset13.parameter([3], np.int64)
    scaled = opset13.multiply(opset13.convert(opset13.constant(table), "f32"), opset13.constant(scales))
    rows = opset13.gather(scaled, ids, opset13.constant(np.int64(0)))
    model = openvino.Model([opset13.relu(opset13.negative(rows))], [ids], "rows")
    conversion.look_up_before_scaling(model)
    kinds = [node.get_type_name() for node in model.get_ordered_ops()]
    assert kinds.count("Gather") == 2
    asked = np.array([6, 0, 3])
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert compiled([asked])[0] == pytest.approx(np.maximum(0, -table[asked] * scales[asked]))


@pytest.mark.slow
@pytest.mark.real_model
def test_bf16_of_the_built_in_model_is_nearly_exact(minilm, news, tmp_path):
    _, gate = compile_encoder(minilm, tmp_path, precision=Precision.BF16, calibration=news, progress=Silent())
    assert gate.smallest_cosine > 0.9995


def test_precisions_are_different_spaces(tiny, tiny_fp32, tmp_path):
    encoder, _ = compile_encoder(
        tiny, tmp_path, precision=Precision.BF16, calibration=TEXTS, progress=Silent(), bound=0
    )
    assert encoder.fingerprint != tiny_fp32.fingerprint


def test_the_same_input_gives_the_same_bytes(tiny, tmp_path):
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        compile_encoder(tiny, folder, precision=Precision.INT8, calibration=TEXTS, progress=Silent(), bound=0)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]


def test_a_collection_of_empty_texts_still_compiles(tiny, tmp_path):
    encoder, _ = compile_encoder(
        tiny, tmp_path, precision=Precision.INT8, calibration=["", " "], progress=Silent(), bound=0
    )
    assert encoder.encode(["", "a loan"]).any(axis=1).tolist() == [False, True]


def test_calibration_groups_hold_no_padding_and_keep_the_last_piece():
    ids = [[1, 5, 6, 7, 9], [1, 5, 9], [1, 9]]
    (group,) = calibration_batches(ids)
    assert group.tolist() == [[1, 9], [1, 9], [1, 9]]
    lengths = [len(group[0]) for group in calibration_batches([[1] + [2] * size + [9] for size in range(1, 21)])]
    assert lengths == [3, 11, 19]


def test_calibration_takes_texts_evenly_within_its_budget_of_pieces():
    groups = calibration_batches([[number] * 10 for number in range(100)], most_pieces=55)
    assert sorted(group_row[0] for group in groups for group_row in group) == [0, 25, 50, 74, 99]


def test_the_gates_texts_are_of_all_lengths():
    texts = ["x" * size for size in range(1000)]
    sample = [len(text) for text in gate_sample(texts, 5)]
    assert sample == [0, 250, 500, 749, 999]
    assert gate_sample(["a"], 64) == ["a"]


GUARDED = """
import socket, sys
opened = []
def watch(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        opened.append((event, str(arguments)))
    if event == "socket.__new__" and arguments[1] != socket.AF_UNIX:
        opened.append((event, str(arguments)))
sys.addaudithook(watch)
from pathlib import Path
from corpora.progress import Silent
from indexer.contextual.conversion import Precision, compile_encoder
from indexer.contextual.transformer import TransformerSpec, open_transformer
reference = open_transformer(TransformerSpec(sys.argv[1]), Silent())
texts = ["the river bank", "a loan", "fish", "my account is empty", "boat"]
encoder, gate = compile_encoder(
    reference, Path(sys.argv[2]), precision=Precision.INT8, calibration=texts, progress=Silent(), bound=0
)
encoder.encode(texts)
assert "pytest" not in sys.modules
print(gate.used.value, opened, bool(sys.modules.get("openvino_telemetry")))
"""


def test_converting_opens_no_socket_and_says_nothing(tiny_transformers, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in {"HF_HUB_OFFLINE", "CI"}}
    environment["PYTHONPATH"] = str(Path(conversion.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, str(tiny_transformers["plain"]), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert done.stdout.strip() == "int8 [] False", done.stderr
    assert done.stderr == ""
