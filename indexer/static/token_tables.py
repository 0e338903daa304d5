"""Static sentence models of the model2vec kind: a vector a word piece, averaged.

A folder holds `tokenizer.json` and `model.safetensors` with `embeddings` (rows, d), and perhaps
`weights` (V,) and `mapping` (V,), which token uses which row. A text's vector is the mean of its tokens' weighted rows,
unknown tokens and special ones left out. Read with safetensors and tokenizers alone.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.encoder import Coverage, Role
from indexer.errors import DamagedIndexError, FormatVersionError, ModelError, ModelNotFoundError, other_format
from indexer.static import seal
from indexer.static.vocabulary import mapped
from indexer.vectors import Vectors, as_float32, normalize

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KIND = "token_table"
_FORMAT_VERSION = 1
_BATCH = 2048
_TENSORS = (
    "embeddings",
    "embedding.weight",
)  # model2vec's name, sentence-transformers' StaticEmbedding's name
_SUBFOLDERS = ("", "0_StaticEmbedding")


@dataclass(frozen=True, eq=False)
class TokenTableEncoder:
    """Means of token vectors, of unit length. Make one with `read_sentence_model`, open one with `load`.

    Attributes
    ----------
    tokenizer : cuts a text into tokens, without padding or truncation.
    table : (V, d) float32, the weighted vector of each token; weights and mapping are already in it.
    unknown_id : the id that stands for unknown tokens, -1 if the tokenizer has none.
    fingerprint : hex digest of table and tokenizer.
    name : where it came from, for people.
    """

    tokenizer: "Tokenizer"
    table: Vectors
    unknown_id: int
    fingerprint: str
    name: str = ""

    @property
    def dimension(self) -> int:
        """Dimensions d of the vectors."""
        return int(self.table.shape[1])

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length, zeros for texts without a known token."""
        del role  # a token means the same on either side
        found = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            rows = self._ids(texts[start : start + _BATCH])
            found[start : start + len(rows)] = normalize(self._sums(rows))
        return found

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many known tokens the texts have."""
        return sum(len(row) for start in range(0, len(texts), _BATCH) for row in self._ids(texts[start:][:_BATCH]))

    def coverage(self, text: str) -> Coverage:
        """Return the text's known tokens, and the stretches of text that the tokenizer does not know."""
        encoding = self.tokenizer.encode(_encodable(text), add_special_tokens=False)
        known = tuple(t for t, i in zip(encoding.tokens, encoding.ids, strict=True) if i != self.unknown_id)
        spans = zip(encoding.offsets, encoding.ids, strict=True)
        return Coverage(known, tuple(text[start:end] for (start, end), i in spans if i == self.unknown_id))

    def word_weights(self, text: str) -> list[tuple[str, float, Vectors]]:
        """Return (token, 1, (1, d) weighted vector) for each known token; they sum to the text's vector."""
        (row,) = self._ids([text])
        return [(self.tokenizer.id_to_token(token) or "", 1.0, self.table[token][None]) for token in row]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        found = self.tokenizer.encode_batch_fast([_encodable(text) for text in texts], add_special_tokens=False)
        return [[token for token in encoding.ids if token != self.unknown_id] for encoding in found]

    def _sums(self, rows: list[list[int]]) -> Vectors:
        from scipy.sparse import csr_array

        offsets = np.cumsum([0, *map(len, rows)])
        ids: NDArray[np.int64] = np.fromiter((token for row in rows for token in row), np.int64, offsets[-1])
        counts = csr_array((np.ones(len(ids), np.float32), ids, offsets), shape=(len(rows), len(self.table)))
        return as_float32(counts @ self.table)

    def save(self, folder: Path) -> None:
        """Write table, tokenizer and `encoder.json` into an existing empty folder."""
        np.save(folder / "table.npy", self.table, allow_pickle=False)
        self.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        content = {
            "kind": KIND,
            "fingerprint": self.fingerprint,
            "name": self.name,
            "unknown_id": self.unknown_id,
            "format_version": _FORMAT_VERSION,
            "files": seal.seal(folder, ["table.npy", "tokenizer.json"]),
        }
        (folder / "encoder.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> TokenTableEncoder:
    """Open what `TokenTableEncoder.save` wrote; the table is memory-mapped.

    Raises
    ------
    DamagedIndexError
        If a file is missing, damaged or not the one that was written.
    FormatVersionError
        If another version of this format wrote it.
    """
    path = folder / "encoder.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        # The first of this format do not name it.
        if (found := content.get("format_version", _FORMAT_VERSION)) != _FORMAT_VERSION:
            raise other_format(str(path), found, _FORMAT_VERSION)
        seal.check(folder, content["files"])
        return TokenTableEncoder(
            _tokenizer(folder / "tokenizer.json"),
            mapped(folder / "table.npy"),
            int(content["unknown_id"]),
            str(content["fingerprint"]),
            str(content["name"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DamagedIndexError | FormatVersionError):
            raise
        message = f"{path} is missing or damaged ({error}); write the index again"
        raise DamagedIndexError(message) from error


def is_sentence_model(folder: Path) -> bool:
    """Say whether a folder looks like a static sentence model rather than a transformer."""
    if (folder / "0_StaticEmbedding").is_dir():
        return True
    if not (folder / "model.safetensors").is_file() or not (folder / "tokenizer.json").is_file():
        return False
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / "model.safetensors", framework="numpy") as tensors:
            return any(name in tensors.keys() for name in _TENSORS)  # noqa: SIM118 - no mapping, has only keys()
    except (SafetensorError, OSError):
        return False


def read_sentence_model(folder: Path) -> TokenTableEncoder:
    """Read a static sentence model from a local folder.

    Raises
    ------
    ModelNotFoundError
        If the folder lacks `model.safetensors` or `tokenizer.json`.
    ModelError
        If they are damaged or do not fit together.
    """
    place = next((folder / sub for sub in _SUBFOLDERS if (folder / sub / "model.safetensors").is_file()), folder)
    for name in ("model.safetensors", "tokenizer.json"):
        if not (place / name).is_file():
            message = f"{place / name} is missing; a static sentence model has model.safetensors and tokenizer.json"
            raise ModelNotFoundError(message)
    tokenizer = _tokenizer(place / "tokenizer.json")
    table = _token_table(place / "model.safetensors", tokenizer.get_vocab_size())
    digest = hashlib.sha256(tokenizer.to_str().encode())
    digest.update(table.data)
    return TokenTableEncoder(tokenizer, table, _unknown_id(tokenizer), digest.hexdigest(), folder.name)


def _token_table(path: Path, n_tokens: int) -> Vectors:
    """Return one row a token: embeddings by mapping, times weights."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        message = f"{path} is no whole safetensors file ({error}); fetch it again"
        raise ModelError(message) from error
    name = next((name for name in _TENSORS if name in tensors), None)
    if name is None:
        message = f"{path} holds {sorted(tensors)[:5]}, expected a tensor 'embeddings'; this is no static model"
        raise ModelError(message)
    embeddings = tensors[name]
    mapping = tensors.get("mapping", np.arange(len(embeddings)))
    weights = tensors.get("weights", np.ones(len(mapping), dtype=np.float32))
    if embeddings.ndim != 2 or len(mapping) != n_tokens or len(weights) != n_tokens:
        message = (
            f"{path} has vectors for {len(mapping)} tokens and {len(weights)} weights, "
            f"tokenizer.json has {n_tokens} tokens; the two files belong to different models"
        )
        raise ModelError(message)
    if mapping.size and not 0 <= mapping.min() <= mapping.max() < len(embeddings):
        message = f"{path} maps tokens to row {mapping.max()}, but has {len(embeddings)} rows"
        raise ModelError(message)
    table = as_float32(embeddings.astype(np.float32)[mapping] * weights.astype(np.float32)[:, None])
    if not np.isfinite(table).all():
        message = f"{path} holds numbers that are not finite"
        raise ModelError(message)
    return table


def _tokenizer(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        message = f"{path} is no tokenizer file ({error}); fetch it again"
        raise ModelError(message) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _unknown_id(tokenizer: "Tokenizer") -> int:
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:  # Unigram
        return int(model["unk_id"])
    token = model.get("unk_token")
    found = None if token is None else tokenizer.token_to_id(token)
    return -1 if found is None else int(found)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which the tokenizer cannot take."""
    return text.encode("utf-8", "replace").decode()
