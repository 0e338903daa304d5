"""Whether a folder holds a transformer that may be loaded: seen from its files, before a model library opens them."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import ModelError, UntrustedPickleError
from indexer.static.token_tables import is_sentence_model

if TYPE_CHECKING:
    from indexer.contextual.checkpoint import Checkpoint

_LFS = b"version https://git-lfs"


def load_failure(checkpoint: "Checkpoint", error: Exception, what: str) -> ModelError:
    """Return the one line about a model that the libraries cannot load as `what`."""
    code = checkpoint.config.get("auto_map")
    if code:
        named = min(map(str, code.values())) if isinstance(code, dict) else code
        return ModelError(
            f"{checkpoint.name} asks for code of its own (auto_map: {str(named)[:80]}), which is never run; choose"
            " another model"
        )
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelError(f"{checkpoint.name} cannot be loaded as {what} ({reason[:300]})")


def refuse_foreign_weights(checkpoint: "Checkpoint", wanted: Collection[str]) -> None:
    """Refuse weights with less than half of a transformer's arrays: the others would be random numbers.

    Names in files have prefixes (`bert.`) and, where they are old, `gamma` and `beta`; libraries know more such
    differences, so a few arrays that are not found are none of our business.

    Raises
    ------
    ModelError
        If the weights are those of another kind of model.
    """
    from safetensors import safe_open

    held: set[str] = set()
    for path in checkpoint.transformer_folder.glob("*.safetensors"):
        with safe_open(path, framework="numpy") as tensors:
            held.update(name.replace("gamma", "weight").replace("beta", "bias") for name in tensors.keys())  # noqa: SIM118
    if not held:
        return  # a trusted pickle, which only its library can look into
    ends = {".".join(name.split(".")[start:]) for name in held for start in range(name.count(".") + 1)}
    missing = sorted(name for name in wanted if name not in ends)
    if 2 * len(missing) > len(wanted):
        message = (
            f"the weights of {checkpoint.name} lack {len(missing)} of {len(wanted)} arrays ({missing[0]}, ...):"
            " they are of another model than config.json describes"
        )
        raise ModelError(message)


def check_checkpoint(checkpoint: "Checkpoint", *, trust_pickle: bool) -> None:
    """Refuse a folder that holds no transformer, a damaged one, or one that would run code.

    Raises
    ------
    ModelError
        If it holds something else, or a file of it cannot be read.
    UntrustedPickleError
        If weights are a pickle and `trust_pickle` is not set.
    """
    if is_sentence_model(checkpoint.folder):
        message = (
            f"{checkpoint.folder} holds a static sentence model (model2vec's kind), not a transformer; its retriever is"
            f" token-table:model={checkpoint.name}"
        )
        raise ModelError(message)
    for kind, _ in checkpoint.module_types:
        if not kind.startswith("sentence_transformers."):
            message = f"{checkpoint.name} asks for code of its own ({kind}), which is never run; choose another model"
            raise ModelError(message)
    if not (checkpoint.transformer_folder / "config.json").exists():
        message = f"{checkpoint.folder} holds no transformer (no config.json, no modules.json)"
        raise ModelError(message)
    _check_config(checkpoint)
    if not checkpoint.weight_files:
        message = f"{checkpoint.folder} holds no weights (no .safetensors file)"
        raise ModelError(message)
    pickles = [path for path in checkpoint.weight_files if path.suffix == ".bin"]
    if pickles and not trust_pickle:
        message = (
            f"{pickles[0]} is a pickle, which can run code when loaded; convert it to safetensors, or add "
            "--trust-pickle if you trust where it came from"
        )
        raise UntrustedPickleError(message)
    for path in checkpoint.weight_files:
        if path.suffix == ".safetensors":
            _check_header(path)


def _check_config(checkpoint: "Checkpoint") -> None:
    kind = checkpoint.config.get("model_type")
    if not isinstance(kind, str) or not kind:
        path = checkpoint.transformer_folder / "config.json"
        message = f"{path} names no model_type, so nothing says which transformer this is; expected, for instance, bert"
        raise ModelError(message)


def _check_header(path: Path) -> None:
    """Refuse what is no whole safetensors file before a model library stumbles over it."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        with path.open("rb") as file:
            is_pointer = file.read(len(_LFS)) == _LFS
        what = "a git LFS pointer, not the weights (git lfs pull fetches them)" if is_pointer else f"{error}"
        message = f"{path} is no whole safetensors file: {what}; fetch it again"
        raise ModelError(message) from error
