"""ELMo as an encoder: a text's vector is the mean of its tokens' states, of one layer or of a mix of layers.

Layer 0 is the context-free token vector, given twice, once for each direction; layers 1 to L are the
LSTMs', forward beside backward. By default each text starts the LSTMs from zero, so that a text's vector
does not depend on what was encoded before it. The published code carried the state from one batch to the
next; so does `sentence_states(..., carry_state=True)`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from indexer.contextual.batching import batches
from indexer.contextual.elmo_network import (
    CellState,
    ElmoNetwork,
    NetworkState,
    boundary_ids,
    character_ids,
)
from indexer.contextual.elmo_weights import (
    Arrays,
    ElmoOptions,
    find_elmo,
    options_of,
    read_options,
    read_weights,
)
from indexer.encoder import Counted, Role
from indexer.errors import DamagedIndexError, FormatVersionError, SpecError, other_format
from indexer.static import seal
from indexer.vectors import Vectors, normalize

KIND = "elmo"
_FORMAT_VERSION = 1
#: Changes whenever the same text may give other tokens.
_TOKENIZER_VERSION = 1

_TOKEN = re.compile(r"\w+(?:['’.]\w+)*|[^\w\s]")
#: The published code reads these two tokens as begin and end of a sentence; `tokenize` never gives them.
_BEGIN, _END = "<S>", "</S>"
_KEPT_TOKENS = 50_000
_GATE_VALUES = 1 << 23
_FILTER_VALUES = 1 << 24

States = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ElmoSpec:
    """Which ELMo model, and which of its layers make a vector.

    Parameters
    ----------
    model
        A folder with `*options.json` and `*weights.hdf5`, or the weights file.
    layer
        0 (tokens) to L; None mixes all layers.
    mixing
        A weight for each layer, which is what a task learns of them; None: equal weights.
    max_tokens
        Most tokens read of a text; an LSTM has no limit of its own, but the cost grows with each.
    """

    model: str
    layer: int | None = None
    mixing: tuple[float, ...] | None = None
    max_tokens: int = 512


class ElmoTokens(NamedTuple):
    """The t tokens of a text and their (1 + L, t, d) float32 states by layer."""

    tokens: tuple[str, ...]
    states: States


def tokenize(text: str) -> list[str]:
    """Cut a text into words and marks, case kept: the model reads characters, so no word is unknown."""
    return _TOKEN.findall(text)


@dataclass(eq=False)
class ElmoEncoder:
    """Encodes with ELMo on the CPU. `open_elmo` makes one, `load` opens a saved one."""

    spec: ElmoSpec
    options: ElmoOptions
    arrays: Arrays
    published_options: str
    _network: ElmoNetwork = field(init=False, repr=False)
    _mixing: NDArray[np.float32] = field(init=False, repr=False)
    _token_table: dict[str, Tensor] = field(init=False, repr=False, default_factory=dict)
    _fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out the weights of the layers and the fingerprint."""
        self._network = ElmoNetwork.of(self.options, self.arrays)
        self._mixing = _mixing(self.spec, self.layers)
        digest = hashlib.sha256(repr((KIND, _TOKENIZER_VERSION, self.options, self.spec.max_tokens)).encode())
        digest.update(self._mixing.tobytes())
        for name, array in sorted(self.arrays.items()):
            digest.update(name.encode())
            digest.update(array.tobytes())
        self._fingerprint = digest.hexdigest()

    @property
    def fingerprint(self) -> str:
        """Hex digest of weights, options, layer weights, tokenizer and length limit."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Dimensions d = 2 p of the vectors."""
        return 2 * self.options.projection_dimension

    @property
    def layers(self) -> int:
        """Number L of layers after the token vectors."""
        return self.options.layers

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length; a text without tokens is a row of zeros."""
        del role  # ELMo knows no prompts
        return normalize(np.tensordot(self._mixing, self.layer_states(texts), axes=1))

    def encode_counted(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Counted:
        """Return what `encode` returns, and the tokens read of each text."""
        read = np.fromiter((len(self._read(text)) for text in texts), np.int32, len(texts))
        return Counted(self.encode(texts, role=role), read)

    def layer_states(self, texts: Sequence[str]) -> States:
        """Return (1 + L, n, d) float32: each layer's states, averaged over a text's tokens, not scaled."""
        sentences = [self._read(text) for text in texts]
        out = np.zeros((1 + self.layers, len(texts), self.dimension), dtype=np.float32)
        most = max(64, _GATE_VALUES // (4 * self.options.cell_dimension))
        for rows in batches([len(each) + 2 for each in sentences], most_pieces=most, most_texts=256):
            found, _ = self._states([sentences[row] for row in rows], None)
            for row, states in zip(rows, found, strict=True):
                if states.shape[1]:
                    out[:, row] = states.mean(axis=1, dtype=np.float64)
        return out

    def token_states(self, text: str) -> ElmoTokens:
        """Return the tokens of one text with their states."""
        tokens = self._read(text)
        found, _ = self._states([tokens], None)
        return ElmoTokens(tuple(tokens), found[0])

    def sentence_states(
        self, batches_of_tokens: Iterable[Sequence[Sequence[str]]], *, carry_state: bool = False
    ) -> Iterator[list[States]]:
        """Yield the (1 + L, t, d) states of each sentence of each batch, the tokens being given.

        Parameters
        ----------
        batches_of_tokens
            Batches of sentences of tokens.
        carry_state
            Whether row k of a batch starts where row k of the batch before ended, as the published code does;
            results then depend on the order.
        """
        state: NetworkState | None = None
        for sentences in batches_of_tokens:
            found, after = self._states(sentences, _resized(state, len(sentences)))
            state = after if carry_state else None
            yield found

    def token_table(self, tokens: Sequence[str]) -> Vectors:
        """Return the (n, p) context-free vectors of tokens."""
        self._look_up(tokens)
        rows = [self._token_table[token].numpy() for token in tokens]
        return np.stack(rows) if rows else np.zeros((0, self.options.projection_dimension), np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many tokens of the texts are read."""
        return sum(len(self._read(text)) for text in texts)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than what is read of them."""
        return sum(len(tokenize(text)) > self.spec.max_tokens for text in texts)

    def save(self, folder: Path) -> None:
        """Copy options and weights (as safetensors) into an existing empty folder, and describe them."""
        from safetensors.numpy import save_file

        (folder / "options.json").write_text(self.published_options, encoding="utf-8")
        save_file(dict(self.arrays), str(folder / "weights.safetensors"))
        content = {
            "kind": KIND,
            "format_version": _FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "model": Path(self.spec.model).name,
            "layer": self.spec.layer,
            "mixing": self.spec.mixing,
            "max_tokens": self.spec.max_tokens,
            "files": seal.seal(folder, ["options.json", "weights.safetensors"]),
        }
        (folder / "encoder.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def _read(self, text: str) -> list[str]:
        return tokenize(text)[: self.spec.max_tokens]

    def _look_up(self, tokens: Iterable[str]) -> None:
        """Compute the vectors of tokens that are not in the table yet; a token is computed once."""
        with torch.inference_mode():
            width = self.options.characters_per_token
            if not self._token_table or len(self._token_table) > _KEPT_TOKENS:
                bounds = self._network.token_vectors(boundary_ids(width))
                self._token_table = {_BEGIN: bounds[0], _END: bounds[1]}
            new = [token for token in dict.fromkeys(tokens) if token not in self._token_table]
            size = max(1, _FILTER_VALUES // (width * max(count for _, count in self.options.filters)))
            for start in range(0, len(new), size):
                part = new[start : start + size]
                vectors = self._network.token_vectors(character_ids(part, width))
                self._token_table.update(zip(part, vectors, strict=True))

    def _states(
        self, sentences: Sequence[Sequence[str]], state: NetworkState | None
    ) -> tuple[list[States], NetworkState]:
        """Return the states of each sentence, boundaries left out, and where the LSTMs stand then."""
        self._look_up(token for sentence in sentences for token in sentence)
        lengths = [len(sentence) + 2 for sentence in sentences]
        size = (len(sentences), max(lengths, default=2), self.options.projection_dimension)
        with torch.inference_mode():
            tokens = torch.zeros(size)
            for row, sentence in enumerate(sentences):
                vectors = [self._token_table[token] for token in (_BEGIN, *sentence, _END)]
                tokens[row, : lengths[row]] = torch.stack(vectors)
            states, after = self._network.layers(tokens, lengths, state)
        array = states.numpy()
        return [array[:, row, 1 : length - 1] for row, length in enumerate(lengths)], after


def _resized(state: NetworkState | None, n: int) -> NetworkState | None:
    """Return the state for n rows: rows beyond those there were start from zero."""
    if state is None:
        return None
    return {key: CellState(*(_rows(part, n) for part in parts)) for key, parts in state.items()}


def _rows(part: Tensor, n: int) -> Tensor:
    return torch.cat([part[:n], torch.zeros(max(0, n - len(part)), part.shape[1])])


def _mixing(spec: ElmoSpec, layers: int) -> NDArray[np.float32]:
    if spec.max_tokens < 1:
        message = f"at least 1 token of a text must be read, found {spec.max_tokens}"
        raise SpecError(message)
    if spec.layer is not None:
        if not 0 <= spec.layer <= layers:
            message = f"this ELMo has layers 0 to {layers}, asked for layer {spec.layer}"
            raise SpecError(message)
        one_hot: NDArray[np.float32] = (np.arange(1 + layers) == spec.layer).astype(np.float32)
        return one_hot
    weights = np.asarray(spec.mixing or [1.0] * (1 + layers), dtype=np.float32)
    if weights.shape != (1 + layers,) or not np.isfinite(weights).all():
        message = f"this ELMo mixes {1 + layers} layers, found the weights {spec.mixing}"
        raise SpecError(message)
    mixing: NDArray[np.float32] = weights / np.float32(len(weights) if spec.mixing is None else 1)
    return mixing


def open_elmo(spec: ElmoSpec) -> ElmoEncoder:
    """Open a model in its published form.

    Raises
    ------
    ModelError
        If it cannot be found or read, or holds something else.
    SpecError
        If it has no such layer.
    """
    options_path, weights_path = find_elmo(spec.model)
    options = read_options(options_path)
    arrays = read_weights(weights_path, options)
    return ElmoEncoder(spec, options, arrays, options_path.read_text(encoding="utf-8"))


def load(folder: Path) -> ElmoEncoder:
    """Open what `ElmoEncoder.save` wrote.

    Raises
    ------
    DamagedIndexError
        If a file is missing, damaged or not the one that was written.
    FormatVersionError
        If another version of this format wrote it.
    """
    from safetensors.numpy import load_file

    path = folder / "encoder.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        _check_version(content["format_version"], path)
        seal.check(folder, content["files"])
        published = (folder / "options.json").read_text(encoding="utf-8")
        options = options_of(json.loads(published), folder / "options.json")
        mixing = content["mixing"]
        spec = ElmoSpec(content["model"], content["layer"], tuple(mixing) if mixing else None, content["max_tokens"])
        encoder = ElmoEncoder(spec, options, load_file(str(folder / "weights.safetensors")), published)
    except Exception as error:
        if isinstance(error, DamagedIndexError | FormatVersionError):
            raise
        message = f"{path} is missing or damaged ({error}); index again"
        raise DamagedIndexError(message) from error
    if encoder.fingerprint != content["fingerprint"]:
        message = f"{folder} does not hold the ELMo model that was written there; index again"
        raise DamagedIndexError(message)
    return encoder


def _check_version(found: object, path: Path) -> None:
    if found != _FORMAT_VERSION:
        raise other_format(str(path), found, _FORMAT_VERSION)
