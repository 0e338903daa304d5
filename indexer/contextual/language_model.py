"""Transformers with their language-model heads: which head a model brings, and loading the two together."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from indexer.contextual.checkpoint import Checkpoint, read_json
from indexer.contextual.soundness import load_failure
from indexer.contextual.tokenization import PieceTokenizer
from indexer.contextual.transformer import quiet_libraries
from indexer.errors import ModelError

#: Where pre-norm models keep the norm that stands between the last layer and the head.
_FINAL_NORMS = ("ln_f", "norm", "final_layer_norm", "final_layernorm", "final_norm")
_HEADS = {
    "ForMaskedLM": ("masked", "AutoModelForMaskedLM"),
    "ForPreTraining": ("masked", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal", "AutoModelForCausalLM"),
}


class Head(StrEnum):
    """Which language-model head a model brings: it names the masked piece, the next piece, or nothing."""

    MASKED = "masked"
    CAUSAL = "causal"
    NONE = "none"


def load_with_head(checkpoint: Checkpoint) -> tuple[Head, Any]:
    """Load a transformer, with its language-model head where its configuration names one and its weights hold it.

    Raises
    ------
    ModelError
        If it cannot be loaded, or lacks weights of its body.
    """
    named = " ".join(checkpoint.config.get("architectures") or [])
    for ending, (head, loader) in _HEADS.items():
        if named.endswith(ending):
            model, missing = _from_pretrained(checkpoint, loader)
            prefix = f"{model.base_model_prefix}."
            # A head that the file lacks would be random numbers; tied weights do not count as missing.
            if all(name.startswith(prefix) for name in missing):
                return Head(head), model
            break
    model, _ = _from_pretrained(checkpoint, "AutoModel")
    return Head.NONE, model


def _from_pretrained(checkpoint: Checkpoint, loader: str) -> tuple[Any, set[str]]:
    with quiet_libraries():
        import transformers

        options: dict[str, Any] = {}
        if not any(path.suffix == ".bin" for path in checkpoint.weight_files):
            options["use_safetensors"] = True
        try:
            model, found = getattr(transformers, loader).from_pretrained(
                str(checkpoint.transformer_folder),
                trust_remote_code=False,
                local_files_only=True,
                attn_implementation="eager",
                dtype=torch.float32,
                output_loading_info=True,
                **options,
            )
        except Exception as error:
            raise load_failure(checkpoint, error, "a transformer") from error
    missing = {name for name in found["missing_keys"] if "pooler" not in name}
    body = sorted(name for name in missing if loader == "AutoModel")
    if body:
        message = f"the weights of {checkpoint.name} lack {len(body)} arrays ({body[0]}, ...)"
        raise ModelError(message)
    return model.eval(), missing


def mask_id(folder: Path, tokenizer: PieceTokenizer) -> int:
    """Return the model's mask, or what may stand in for one where it has none."""
    candidates: list[str] = []
    settings = [read_json(folder / name, missing={}) for name in ("special_tokens_map.json", "tokenizer_config.json")]
    for role in ("mask_token", "unk_token", "eos_token"):
        for setting in settings:
            value = setting.get(role)
            candidates.append(str(value.get("content", "")) if isinstance(value, dict) else str(value or ""))
        candidates += {"mask_token": ["[MASK]", "<mask>"]}.get(role, [])
    found = (tokenizer.id_of(candidate) for candidate in candidates if candidate)
    return next((number for number in found if number is not None), 0)


def final_norm(core: Any) -> Any:
    """Return the norm that stands between the last layer and the head, None where there is none."""
    for holder in (core, getattr(core, "decoder", None)):
        for name in _FINAL_NORMS:
            norm = getattr(holder, name, None)
            if norm is not None:
                return norm
    return None
