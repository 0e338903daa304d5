"""The reference encoder: a SentenceTransformer, or any layer of a plain transformer, run by torch."""

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from corpora.progress import Progress, Silent
from indexer.contextual.batching import batches, padded
from indexer.contextual.checkpoint import (
    BUILT_IN_NAME,
    Checkpoint,
    TransformerSpec,
    find_checkpoint,
    model_identity,
)
from indexer.contextual.soundness import load_failure, refuse_foreign_weights
from indexer.contextual.space import Space
from indexer.contextual.tokenization import PieceOffsets, PieceTokenizer, open_tokenizer
from indexer.encoder import Counted, Role
from indexer.errors import DamagedIndexError, FormatVersionError, PortabilityError, SpecError, other_format
from indexer.vectors import Vectors, normalize

__all__ = [
    "Space",
    "TransformerEncoder",
    "TransformerSpec",
    "load",
    "model_identity",
    "open_transformer",
]

_BATCH_PIECES = 4096
_BATCH_TEXTS = 64
_FORMAT = 1


class TransformerEncoder:
    """Encodes with torch: fp32 on the CPU, fp16 on CUDA.

    Attributes
    ----------
    space
        What decides the vectors.
    model
        The SentenceTransformer.
    pieces
        Its tokenizer.
    """

    def __init__(self, model: Any, space: Space, spec: TransformerSpec, pieces: PieceTokenizer, pad_id: int) -> None:
        """Take a loaded model; `open_transformer` makes one."""
        self.model = model
        self.space = space
        self.spec = spec
        self.pieces = pieces
        self.pad_id = pad_id
        self.precision = "fp16" if model.device.type == "cuda" else "fp32"
        from indexer.contextual.pooling import sentence_module

        self.module = sentence_module(model, space.layer, space.pooling).eval()
        self.dimension = int(self._forward([[pad_id]]).shape[1])

    @property
    def fingerprint(self) -> str:
        """Hex digest of the space and the precision."""
        return self.space.fingerprint(self.precision)

    @property
    def layers(self) -> int:
        """Number L of layers after the embeddings."""
        return layer_count(self.model)

    @property
    def max_tokens(self) -> int:
        """Pieces of a passage that fit beside the special pieces and the document prompt."""
        return int(self.pieces.budget)

    def piece_offsets(self, texts: Sequence[str]) -> list[PieceOffsets]:
        """Return the (t, 2) character offsets of each text's pieces, uncut and without special pieces."""
        return self.pieces.piece_offsets(texts)

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length; a text without any piece is a row of zeros."""
        return self.encode_counted(texts, role=role).vectors

    def encode_counted(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Counted:
        """Return what `encode` returns, and the pieces read of each text, special ones and prompts included."""
        prompt = self.space.prompt(role)
        ids = self.pieces.ids([prompt + text for text in texts])
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for rows in batches([len(each) for each in ids], most_pieces=_BATCH_PIECES, most_texts=_BATCH_TEXTS):
            out[rows] = self._forward([ids[row] for row in rows])
        out[[row for row, text in enumerate(texts) if not text.strip()]] = 0.0
        return Counted(normalize(out), np.fromiter(map(len, ids), np.int32, len(ids)))

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many pieces of the texts the model reads, special ones and prompts included."""
        return sum(len(each) for each in self.pieces.ids([self.space.document_prompt + text for text in texts]))

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than what the model reads of them."""
        return int(np.sum(self.pieces.lengths(texts) > self.max_tokens))

    def save(self, folder: Path) -> None:
        """Write which model this is: queries with this backend need the model where it was."""
        record = {
            "kind": "transformer",
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "model": "" if self.space.model == BUILT_IN_NAME else self.space.model,
            "weights_sha256": self.space.weights_sha256,
            "layer": self.spec.layer,
            "pooling": self.spec.pooling,
            "query_prompt": self.space.query_prompt,
            "document_prompt": self.space.document_prompt,
            "max_length": self.space.max_length,
            "trust_pickle": self.spec.trust_pickle,
        }
        (folder / "encoder.json").write_text(json.dumps(record, indent=1), encoding="utf-8")

    def _forward(self, ids: Sequence[Sequence[int]]) -> Any:
        import torch

        arrays = padded(ids, self.pad_id)
        device = self.model.device
        with torch.inference_mode():
            pooled = self.module(*(torch.from_numpy(array).to(device) for array in arrays))
        return pooled.float().cpu().numpy()


def open_transformer(spec: TransformerSpec, progress: Progress | None = None) -> TransformerEncoder:
    """Load a model from a folder, the hub's cache or the hub.

    Raises
    ------
    ModelError
        If it cannot be found or loaded, is a pickle that is not trusted, or has no fast tokenizer.
    SpecError
        If it has no such layer, or no positions for so many pieces.
    """
    progress = progress or Silent()
    checkpoint = find_checkpoint(spec)
    model = _load_model(checkpoint, spec)
    if spec.layer is not None and spec.layer > layer_count(model):
        message = f"{checkpoint.name} has layers 0 to {layer_count(model)}, asked for layer {spec.layer}"
        raise SpecError(message)
    announce(checkpoint, spec, progress)
    pieces = open_tokenizer(spec)
    space = Space(
        model=str(checkpoint.folder) if Path(spec.model).is_dir() and spec.model else checkpoint.name,
        weights_sha256=checkpoint.weights_hash,
        settings_sha256=checkpoint.settings_hash,
        layer=_layer(spec, model),
        pooling=spec.pooling or own_pooling(model),
        query_prompt=checkpoint.query_prompt(spec.query_prompt),
        document_prompt=checkpoint.document_prompt(spec.document_prompt),
        max_length=pieces.max_length,
    )
    return TransformerEncoder(model, space, spec, pieces, int(model.tokenizer.pad_token_id or 0))


def announce(checkpoint: Checkpoint, spec: TransformerSpec, progress: Progress) -> None:
    """Say aloud what had to be guessed about a model."""
    if not checkpoint.module_types and spec.pooling is None:
        progress.note(
            f"{checkpoint.name} has no modules.json and so no pooling of its own: the mean over its pieces is taken "
            "(pooling=cls|max|first-last chooses another)"
        )
    names = f"{checkpoint.folder.name} {checkpoint.name}".lower()
    is_e5 = "e5" in names.replace("/", " ").replace("-", " ").split()
    if is_e5 and not checkpoint.prompts and spec.query_prompt is None:
        progress.note(
            f'{checkpoint.name} looks like an E5 model without prompts in its configuration; these expect "query: " '
            'and "passage: " before the texts (query-prompt, document-prompt)'
        )


def load(folder: Path) -> TransformerEncoder:
    """Open what `TransformerEncoder.save` wrote: the same model, found and verified again.

    Raises
    ------
    DamagedIndexError
        If the folder does not say which model.
    FormatVersionError
        If another version of this format wrote it.
    PortabilityError
        If the model in that place has other weights or settings now.
    """
    try:
        record = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        if record["format"] != _FORMAT:
            raise other_format(f"{folder / 'encoder.json'}", record["format"], _FORMAT)
        names = ("model", "layer", "pooling", "query_prompt", "document_prompt", "max_length", "trust_pickle")
        spec = TransformerSpec(**{name: record[name] for name in names})
        weights, fingerprint = record["weights_sha256"], record["fingerprint"]
    except FormatVersionError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{folder / 'encoder.json'} does not describe a transformer ({error}); index again"
        raise DamagedIndexError(message) from error
    name, found = model_identity(spec)
    if found != weights:
        message = f"{name} has other weights than when it was indexed ({found[:12]}, was {weights[:12]}); index again"
        raise PortabilityError(message)
    encoder = open_transformer(spec)
    if encoder.fingerprint != fingerprint and encoder.precision == "fp32":
        other = encoder.space.fingerprint("fp16")
        if other == fingerprint:
            encoder.precision = "fp16"  # indexed on CUDA, asked on a CPU: one space within fp16's rounding
    if encoder.fingerprint != fingerprint:
        message = f"{name} gives other vectors than when it was indexed (its settings differ); index again"
        raise PortabilityError(message)
    return encoder


def own_pooling(model: Any) -> str:
    """Return the pooling that a SentenceTransformer was made with."""
    for module in model:
        mode = getattr(module, "pooling_mode", None)
        if mode is not None:
            return str(mode if isinstance(mode, str) else "+".join(mode))
    return "mean"


def layer_count(model: Any) -> int:
    """Return the number of layers after the embeddings."""
    config = model[0].auto_model.config
    return int(getattr(config, "num_hidden_layers", 0) or getattr(config, "n_layers", 0))


def _layer(spec: TransformerSpec, model: Any) -> int | None:
    if spec.layer is None and spec.pooling is not None:
        return layer_count(model)
    return spec.layer


def _load_model(checkpoint: Checkpoint, spec: TransformerSpec) -> Any:
    with quiet_libraries():
        import torch
        from sentence_transformers import SentenceTransformer

        device = "cuda" if torch.cuda.is_available() else "cpu"
        options: dict[str, Any] = {"dtype": torch.float16 if device == "cuda" else torch.float32}
        if not any(path.suffix == ".bin" for path in checkpoint.weight_files):
            options["use_safetensors"] = True
        try:
            model = SentenceTransformer(
                str(checkpoint.folder),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs=options,
            ).eval()
            wanted = model[0].auto_model.state_dict()
        except Exception as error:
            raise load_failure(checkpoint, error, "a sentence encoder") from error
    refuse_foreign_weights(checkpoint, [name for name in wanted if "pooler" not in name])
    return model


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep the model libraries from drawing bars and printing warnings while a model is loaded."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import logging

        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
