"""From a loaded transformer to a compiled encoder's folder, and the gate that it must pass."""

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora.progress import Progress
from indexer.contextual import compiled
from indexer.contextual.batching import padded
from indexer.contextual.checkpoint import file_hash
from indexer.contextual.compiled import CompiledEncoder, Description, Precision
from indexer.contextual.telemetry import forbid_telemetry
from indexer.contextual.transformer import TransformerEncoder
from indexer.errors import ModelError

__all__ = ["Precision", "PrecisionGate", "compile_encoder"]

#: The smallest cosine to the reference that an encoder may have on the gate's texts.
SMALLEST_COSINE = 0.98

_GATE_TEXTS = 64
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

    Raises
    ------
    ModelError
        If the model cannot be converted.
    """
    texts = [text for text in calibration if text.strip()] or ["an empty collection"]
    sample = texts[:: max(1, len(texts) // _GATE_TEXTS)][:_GATE_TEXTS]
    expected = reference.encode(sample)
    progress.start("converting the model", None, "steps")
    try:
        converted = _convert(reference)
        refused: list[tuple[Precision, float]] = []
        for candidate in _COARSER_TO_FINER[_COARSER_TO_FINER.index(precision) :]:
            encoder = _write(reference, converted, folder, candidate, texts)
            cosines = np.einsum("nd,nd->n", expected, encoder.encode(sample))
            smallest = float(cosines.min())
            if smallest >= SMALLEST_COSINE or candidate is Precision.FP32:
                gate = PrecisionGate(
                    precision, candidate, smallest, float(cosines.mean()), len(sample), tuple(refused)
                )
                return encoder, gate
            refused.append((candidate, smallest))
            progress.note(
                f"{reference.space.model}: {candidate} comes only within cosine {smallest:.3f} of the reference "
                f"(bound {SMALLEST_COSINE}); taking the next finer precision"
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

        ids = torch.full((2, 8), reference.pad_id, dtype=torch.long)
        ids[:, :5] = torch.tensor(reference.pieces.ids(["a b c d e f"])[0][:5])
        mask = torch.ones_like(ids)
        mask[1, 5:] = 0
        module = reference.module.to("cpu").float()
        try:
            with torch.no_grad():
                model = openvino.convert_model(
                    module, example_input={"input_ids": ids, "attention_mask": mask}
                )
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            message = f"{reference.space.model} cannot be compiled ({reason}); index with --backend torch"
            raise ModelError(message) from error
        finally:
            reference.module.to(reference.model.device)
        model.reshape({port: openvino.PartialShape([-1, -1]) for port in model.inputs})
        return model


def _quantize(reference: TransformerEncoder, model: Any, texts: Sequence[str]) -> tuple[Any, str]:
    """Quantise with NNCF's post-training method; return the model and a digest of what it was calibrated on."""
    import nncf

    prompt = reference.space.document_prompt
    ids = reference.pieces.ids([prompt + text for text in texts])
    digest = hashlib.sha256(json.dumps(ids).encode()).hexdigest()
    samples = [list(padded([each], reference.pad_id)) for each in ids]
    quantized = nncf.quantize(
        model,
        nncf.Dataset(samples),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(samples),
    )
    return quantized, digest


@contextmanager
def _quiet_conversion() -> Iterator[None]:
    """Keep openvino, nncf and torch's tracer from sending, drawing and warning."""
    forbid_telemetry()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
