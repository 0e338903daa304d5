"""Multiply-adds, worked by hand and counted in the graph that OpenVINO runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from corpora.progress import Silent
from indexer.arithmetic import RecurrentShape, TransformerShape, averaging_multiply_adds
from indexer.contextual.conversion import Precision, compile_encoder
from indexer.contextual.transformer import TransformerSpec, open_transformer


def test_a_layer_of_two_pieces_by_hand() -> None:
    # h = 3, i = 5, two pieces. Four projections: 4 * 2 * 9 = 72. Feed-forward: 2 * 2 * 3 * 5 = 60.
    # Attention: two pieces look at two pieces in 3 dimensions, twice: 2 * 4 * 3 = 24.
    assert TransformerShape(1, 3, 5).multiply_adds([2]) == 72 + 60 + 24
    assert TransformerShape(6, 3, 5).multiply_adds([2]) == 6 * 156
    # Texts add up, and a longer one takes more than its share of pieces.
    assert TransformerShape(1, 3, 5).multiply_adds([2, 2]) == 2 * 156
    assert TransformerShape(1, 3, 5).multiply_adds([4]) == 144 + 120 + 96 > 2 * 156
    assert TransformerShape(1, 3, 5).multiply_adds([]) == 0


def test_the_built_in_model_takes_about_ten_and_a_half_million_a_piece() -> None:
    config = {"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
    shape = TransformerShape.of_config(config)
    assert shape == TransformerShape(6, 384, 1536)
    # 12 h^2 a layer where i = 4 h: 6 * 12 * 147,456; attention adds 6 * 2 * 384 a pair of pieces.
    assert shape.multiply_adds([30]) == 30 * 10_616_832 + 900 * 4_608
    assert shape.multiply_adds([1]) == 10_616_832 + 4_608


@pytest.mark.parametrize(
    ("config", "shape"),
    [
        ({"model_type": "distilbert", "dim": 768, "n_layers": 6, "hidden_dim": 3072}, TransformerShape(6, 768, 3072)),
        ({"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_inner": None}, TransformerShape(2, 16, 64)),
        ({"model_type": "modernbert", "hidden_size": 768, "num_hidden_layers": 22, "intermediate_size": 1152}, None),
        ({"model_type": "bert"}, None),
        ({}, None),
    ],
)
def test_sizes_are_read_by_their_names_and_unknown_kinds_are_not_guessed(
    config: Mapping[str, object], shape: TransformerShape | None
) -> None:
    assert TransformerShape.of_config(config) == shape


def test_only_the_layers_that_run_count() -> None:
    config = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 6, "intermediate_size": 32}
    assert TransformerShape.of_config(config, layers=2) == TransformerShape(2, 8, 32)
    assert TransformerShape.of_config(config, layers=0).multiply_adds([50]) == 0  # type: ignore[union-attr]
    assert TransformerShape.of_config(config, layers=9) == TransformerShape(6, 8, 32)


def test_averages_and_lstms_by_hand() -> None:
    assert averaging_multiply_adds(7, 50) == 350
    # One direction of one layer, p = 2, h = 3: 2p x 4h = 48 for the gates, 3 x 2 = 6 for the output; two directions;
    # four tokens and two marks.
    assert RecurrentShape(1, 3, 2).multiply_adds([4]) == 2 * (48 + 6) * 6
    assert RecurrentShape(2, 2, 2).multiply_adds([0]) == 2 * 2 * 32 * 2


def _counted(model: Path, pieces: int) -> int:
    """Count the multiply-adds of every matrix product in an OpenVINO graph, for one text of so many pieces."""
    import openvino

    graph = openvino.Core().read_model(model)
    graph.reshape({port: [1, pieces] for port in graph.inputs})
    total = 0
    for node in graph.get_ordered_ops():
        if node.get_type_name() == "MatMul":
            left = list(node.input(0).get_shape())
            inner = left[-2] if node.get_attributes()["transpose_a"] else left[-1]
            size = 1
            for extent in node.output(0).get_shape():
                size *= extent
            total += size * inner
        elif node.get_type_name() == "ScaledDotProductAttention":
            batch, heads, rows, width = node.input(0).get_shape()
            total += 2 * batch * heads * rows * rows * width
    return total


@pytest.mark.parametrize("layer", [None, 1])
def test_the_graph_that_runs_holds_as_many(
    tiny_transformers: Mapping[str, Path], tmp_path: Path, layer: int | None
) -> None:
    spec = TransformerSpec(model=str(tiny_transformers["plain"]), layer=layer)
    reference = open_transformer(spec)
    compile_encoder(
        reference, tmp_path, precision=Precision.FP32, calibration=["the river bank", "money"], progress=Silent()
    )
    shape = TransformerShape.of_config({**reference.model[0].auto_model.config.to_dict()}, layers=layer)
    assert shape is not None
    for pieces in (3, 17):
        assert _counted(tmp_path / "model.xml", pieces) == shape.multiply_adds([pieces])
