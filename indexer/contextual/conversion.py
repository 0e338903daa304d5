"""From a loaded transformer to a compiled encoder's folder, and the gate that it must pass."""

import contextlib
import hashlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress
from indexer.contextual import compiled
from indexer.contextual.checkpoint import file_hash
from indexer.contextual.compiled import CompiledEncoder, Description
from indexer.contextual.runtime import Precision
from indexer.contextual.telemetry import forbid_telemetry
from indexer.contextual.transformer import TransformerEncoder, quiet_libraries
from indexer.errors import ModelError

__all__ = ["Precision", "PrecisionGate", "compile_encoder"]

#: The smallest cosine to the reference that an encoder may have on the gate's texts.
SMALLEST_COSINE = 0.98

_GATE_TEXTS = 64
#: Twice as many took 9 s more of processor time and moved the smallest cosine of held-out texts by .001 at most.
_CALIBRATION_PIECES = 16_384
_CALIBRATION_GROUP = 8
_COARSER_TO_FINER = (Precision.INT8, Precision.BF16, Precision.FP32)


@dataclass(frozen=True, slots=True)
class PrecisionGate:
    """How near a compiled encoder is to its reference, on texts of the corpus.

    `refused` are the precisions that were tried before `used` and fell below the bound, with their
    smallest cosines.
    """

    asked: Precision
    used: Precision
    smallest_cosine: float
    mean_cosine: float
    texts: int
    refused: tuple[tuple[Precision, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)


def compile_encoder(
    reference: TransformerEncoder,
    folder: Path,
    *,
    precision: Precision,
    calibration: Sequence[str],
    progress: Progress,
    bound: float = SMALLEST_COSINE,
) -> tuple[CompiledEncoder, PrecisionGate]:
    """Convert a transformer, write it into a folder, and compare it with its reference.

    Parameters
    ----------
    reference
        The loaded transformer.
    folder
        An existing empty folder.
    precision
        The arithmetic wanted; where the gate refuses it the next finer is taken, and a note says so.
    calibration
        Texts of the corpus: int8 takes its ranges from them, the gate its sample.
    progress
        Is told of the fallback.
    bound
        The smallest cosine to the reference that the gate lets pass.

    Raises
    ------
    ModelError
        If the model cannot be converted.
    """
    texts = [text for text in calibration if text.strip()] or ["an empty collection"]
    sample = gate_sample(texts)
    expected = reference.encode(sample)
    progress.start("converting the model", None, "steps")
    try:
        converted = _convert(reference)
        refused: list[tuple[Precision, float]] = []
        for candidate in _COARSER_TO_FINER[_COARSER_TO_FINER.index(precision) :]:
            encoder = _write(reference, converted, folder, candidate, texts)
            cosines = np.einsum("nd,nd->n", expected, encoder.encode(sample))
            smallest = float(cosines.min())
            if smallest >= bound or candidate is Precision.FP32:
                gate = PrecisionGate(precision, candidate, smallest, float(cosines.mean()), len(sample), tuple(refused))
                return encoder, gate
            refused.append((candidate, smallest))
            progress.note(
                f"{reference.space.model}: {candidate} comes only within cosine {smallest:.3f} of the reference "
                f"(bound {bound}); taking the next finer precision"
            )
    finally:
        progress.finish()
    raise AssertionError  # the loop returns at the finest precision


def _write(
    reference: TransformerEncoder, converted: Any, folder: Path, precision: Precision, texts: Sequence[str]
) -> CompiledEncoder:
    with _quiet_conversion():
        import openvino

        model, digest = converted, ""
        if precision is Precision.INT8:
            model, digest = _quantize(reference, converted, texts)
        _name_by_place(model)
        openvino.save_model(model, folder / "model.xml", compress_to_fp16=precision is Precision.BF16)
    (folder / "tokenizer.json").write_text(reference.pieces.definition(), encoding="utf-8")
    description = Description(
        space=reference.space,
        precision=precision,
        dimension=reference.dimension,
        pad_id=reference.pad_id,
        calibration=digest,
        files={name: file_hash(folder / name) for name in compiled.MODEL_FILES},
    )
    (folder / compiled.DESCRIPTION).write_text(json.dumps(description.to_json(), indent=1), encoding="utf-8")
    return compiled.load(folder)


def _convert(reference: TransformerEncoder) -> Any:
    with _quiet_conversion():
        import openvino
        import torch
        from openvino.tools.ovc import convert_model

        ids = torch.full((2, 8), reference.pad_id, dtype=torch.long)
        ids[:, :5] = torch.tensor(reference.pieces.ids(["a b c d e f"])[0][:5])
        mask = torch.ones_like(ids)
        mask[1, 5:] = 0
        module = reference.module.to("cpu").float()
        try:
            with torch.no_grad():
                model = convert_model(module, example_input={"input_ids": ids, "attention_mask": mask})
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            message = f"{reference.space.model} cannot be compiled ({reason}); index with --backend torch"
            raise ModelError(message) from error
        finally:
            reference.module.to(reference.model.device)
        model.reshape({port: openvino.PartialShape([-1, -1]) for port in model.inputs})
        return model


def _quantize(reference: TransformerEncoder, model: Any, texts: Sequence[str]) -> tuple[Any, str]:
    """Quantise with NNCF's post-training method; return the model and a digest of what it was calibrated on.

    Weights and activations of the linear layers become int8. The attention's own products do not: they are
    bounded by the softmax between them, and OpenVINO 2026.4 with int8 keys and queries beside bf16 gives
    wrong vectors to texts of exactly 32 pieces. The correction of biases is left out: it takes a third of the
    time and moved no cosine in the third digit.
    """
    import nncf

    prompt = reference.space.document_prompt
    samples = calibration_batches(reference.pieces.ids([prompt + text for text in texts]))
    digest = hashlib.sha256(json.dumps([sample.tolist() for sample in samples]).encode()).hexdigest()
    # NNCF draws its bars on stdout and has no switch for them.
    with contextlib.redirect_stdout(io.StringIO()):
        quantized = nncf.quantize(
            model,
            nncf.Dataset([[sample, np.ones_like(sample)] for sample in samples]),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(samples),
            ignored_scope=nncf.IgnoredScope(types=["ScaledDotProductAttention"], validate=False),
            advanced_parameters=nncf.AdvancedQuantizationParameters(disable_bias_correction=True),
        )
    look_up_before_scaling(quantized)
    return quantized, digest


def look_up_before_scaling(model: Any) -> None:
    """Move the scaling of int8 embedding tables behind the look-up in them.

    As NNCF leaves it a table is scaled and then looked up in, and OpenVINO scales it whole when it compiles: four times
    the memory, and most of what a cold query has to load.
    """
    from openvino import opset13

    for node in model.get_ordered_ops():
        if node.get_type_name() != "Gather":
            continue
        scaled = node.input_value(0).get_node()
        if scaled.get_type_name() != "Multiply" or scaled.input_value(0).get_node().get_type_name() != "Convert":
            continue
        table, scales = scaled.input_value(0).get_node().input_value(0), scaled.input_value(1)
        shapes = [tuple(each.get_partial_shape()) for each in (table, scales)]
        # One scale a row, looked up along the rows.
        if shapes[1] != (shapes[0][0], 1) or int(node.input_value(2).get_node().data) != 0:
            continue
        ids, axis = node.input_value(1), node.input_value(2)
        rows = opset13.convert(opset13.gather(table, ids, axis), scaled.get_element_type())
        node.output(0).replace(opset13.multiply(rows, opset13.gather(scales, ids, axis)).output(0))
    model.validate_nodes_and_infer_types()


def _name_by_place(model: Any) -> None:
    """Name nodes by their place: as converted they carry a counter of the process, and no two runs write the same."""
    model.set_friendly_name("encoder")
    for number, node in enumerate(model.get_ordered_ops()):
        node.set_friendly_name(f"{node.get_type_name()}_{number}")


def calibration_batches(
    ids: Sequence[Sequence[int]], most_pieces: int = _CALIBRATION_PIECES
) -> list[NDArray[np.int64]]:
    """Return rectangles of piece ids without padding, whose values would widen the ranges.

    Texts are taken evenly from all of them as far as the budget of pieces reaches, sorted by length and put into
    groups; within a group all are cut to the shortest, which keeps its last (special) piece.
    """
    total = sum(map(len, ids))
    taken = len(ids) if total <= most_pieces else max(1, len(ids) * most_pieces // total)
    places = np.linspace(0, len(ids) - 1, taken).round().astype(int)
    ordered = sorted((list(ids[place]) for place in places if len(ids[place])), key=len)
    groups = [ordered[start : start + _CALIBRATION_GROUP] for start in range(0, len(ordered), _CALIBRATION_GROUP)]
    return [np.array([each[: len(group[0]) - 1] + each[-1:] for each in group], dtype=np.int64) for group in groups]


def gate_sample(texts: Sequence[str], size: int = _GATE_TEXTS) -> list[str]:
    """Return texts spread evenly over the lengths there are: kernels differ by length, and so do their faults."""
    ordered = sorted(texts, key=len)
    return [ordered[place] for place in np.unique(np.linspace(0, len(ordered) - 1, size).round().astype(int))]


@contextlib.contextmanager
def _quiet_conversion() -> Iterator[None]:
    """Keep openvino, nncf and torch's tracer from sending, telling and warning."""
    forbid_telemetry()
    logger = logging.getLogger("nncf")
    level = logger.level
    with warnings.catch_warnings(), quiet_libraries():
        warnings.simplefilter("ignore")
        import nncf  # noqa: F401 - it sets its logger's level when first imported

        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
