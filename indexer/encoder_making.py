"""From a retriever's notation to a contextual encoder, written into a folder: one function a family."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.progress import Progress
from indexer.encoder import Encoder
from indexer.errors import ModelError, SpecError
from indexer.spec import Family, RetrieverSpec

if TYPE_CHECKING:
    from indexer.arithmetic import Shape
    from indexer.contextual.elmo import ElmoSpec
    from indexer.contextual.transformer import TransformerSpec

#: The options that decide which encoder is meant.
MODEL_OPTIONS = ("model", "layer", "pooling", "precision", "backend", "query-prompt", "document-prompt")


def transformer_spec(spec: RetrieverSpec, *, trust_pickle: bool = False) -> "TransformerSpec":
    """Return which transformer a retriever's options ask for."""
    from indexer.contextual.transformer import TransformerSpec

    return TransformerSpec(
        model=spec.get("model"),
        layer=int(spec.get("layer")) if spec.get("layer") else None,
        pooling=spec.get("pooling") or None,
        query_prompt=spec.get("query-prompt") or None,
        document_prompt=spec.get("document-prompt") or None,
        trust_pickle=trust_pickle,
    )


def elmo_spec(spec: RetrieverSpec) -> "ElmoSpec":
    """Return which ELMo model a retriever's options ask for.

    Raises
    ------
    ModelError
        If no folder is named: there is no built-in one.
    """
    from indexer.contextual.elmo import ElmoSpec

    if not spec.get("model"):
        message = (
            f"{spec.name}: ELMo has no built-in model; name a folder with options.json and weights: elmo:model=DIR"
        )
        raise ModelError(message)
    return ElmoSpec(spec.get("model"), int(spec.get("layer")) if spec.get("layer") else None)


def identify(spec: RetrieverSpec, *, trust_pickle: bool = False) -> tuple[str, str]:
    """Return the model's name and a digest of its weights, without loading it.

    Raises
    ------
    ModelError
        If it cannot be found.
    """
    if spec.family is Family.ELMO:
        from indexer.contextual.checkpoint import file_hash
        from indexer.contextual.elmo_weights import find_elmo

        options, weights = find_elmo(elmo_spec(spec).model)
        return weights.parent.name, file_hash(options) + file_hash(weights)
    from indexer.contextual.transformer import model_identity

    return model_identity(transformer_spec(spec, trust_pickle=trust_pickle))


def make_encoder(
    spec: RetrieverSpec,
    folder: Path,
    *,
    calibration: Callable[[], Sequence[str]],
    progress: Progress,
    trust_pickle: bool = False,
) -> tuple[Encoder, dict[str, Any]]:
    """Make the contextual encoder of a retriever in an empty folder; return it and what was found on the way.

    Parameters
    ----------
    spec
        The retriever.
    folder
        Where the encoder is written.
    calibration
        Gives texts of the corpus, for arithmetic that takes its ranges from them.
    progress
        Told of the conversion.
    trust_pickle
        Whether weights that are pickles may be loaded.

    Raises
    ------
    ModelError
        If the model cannot be loaded or converted.
    SpecError
        If it has no such layer, or an option has no such value.
    """
    if spec.family is Family.ELMO:
        from indexer.contextual.elmo import open_elmo

        elmo = open_elmo(elmo_spec(spec))
        elmo.save(folder)
        return elmo, {}
    from indexer.contextual.conversion import Precision, compile_encoder
    from indexer.contextual.transformer import open_transformer

    backend, precision = spec.get("backend", "openvino"), spec.get("precision", "int8")
    if backend not in {"openvino", "torch"} or precision not in set(Precision):
        message = (
            f"{spec.name}: backend is openvino or torch and precision one of {', '.join(Precision)};"
            f" found {backend!r} and {precision!r}"
        )
        raise SpecError(message)
    reference = open_transformer(transformer_spec(spec, trust_pickle=trust_pickle), progress)
    if backend == "torch":
        reference.save(folder)
        return reference, {}
    encoder, gate = compile_encoder(
        reference, folder, precision=Precision(precision), calibration=calibration(), progress=progress
    )
    return encoder, {"gate": gate.to_json()}


def shape_of(spec: RetrieverSpec, encoder: Encoder, *, trust_pickle: bool = False) -> "Shape | None":
    """Return what decides the arithmetic of a retriever's contextual encoder; None where it is not counted."""
    from indexer.arithmetic import RecurrentShape, TransformerShape

    if spec.family is Family.ELMO:
        from indexer.contextual.elmo import ElmoEncoder

        if not isinstance(encoder, ElmoEncoder):
            return None
        options = encoder.options
        return RecurrentShape(options.layers, options.cell_dimension, options.projection_dimension)
    from indexer.contextual.checkpoint import find_checkpoint

    config = find_checkpoint(transformer_spec(spec, trust_pickle=trust_pickle)).config
    # A compiled model holds the layers up to the one that is read; torch runs all of them.
    run = int(spec.get("layer")) if spec.get("layer") and spec.get("backend", "openvino") != "torch" else None
    return TransformerShape.of_config(config, layers=run)
