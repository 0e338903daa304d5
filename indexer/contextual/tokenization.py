"""Text to word pieces, as a model's own tokenizer cuts it; imports `tokenizers` alone."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from indexer.errors import DamagedIndexError, ModelError

if TYPE_CHECKING:
    from indexer.contextual.checkpoint import Checkpoint, TransformerSpec

#: Texts handed to the tokenizer at once: enough for its threads, few enough to keep memory flat.
_BLOCK = 2048

PieceOffsets = NDArray[np.int64]


class PieceTokenizer:
    """A model's tokenizer with truncation at the model's own limit and without padding.

    A packaged `tokenizer.json` may carry settings of its training run (all-MiniLM-L6-v2's truncates
    at 128 and pads to 128, where the model reads 256), so both are always set here.
    """

    def __init__(self, definition: str, max_length: int, prompt: str = "") -> None:
        """Read a tokenizer from the text of its `tokenizer.json`.

        Parameters
        ----------
        definition
            The JSON text.
        max_length
            Most pieces the model reads, special ones included.
        prompt
            What the model is given before each document.
        """
        self._reading: Any = Tokenizer.from_str(definition)
        self._reading.no_padding()
        self._reading.enable_truncation(max_length)
        self.max_length = max_length
        self.special_tokens: int = self._reading.num_special_tokens_to_add(False)
        used = int(self.lengths([prompt])[0]) if prompt else 0
        #: Pieces of a document that are read beside the special ones and the prompt's.
        self.budget = max(1, max_length - self.special_tokens - used)

    @cached_property
    def _cutting(self) -> Any:
        """The same without truncation: the setting belongs to the object, which threads share."""
        cutting = Tokenizer.from_str(self._reading.to_str())
        cutting.no_truncation()
        return cutting

    @classmethod
    def open(cls, path: Path, max_length: int, prompt: str = "") -> "PieceTokenizer":
        """Read a `tokenizer.json`.

        Raises
        ------
        DamagedIndexError
            If the file holds no tokenizer.
        """
        try:
            return cls(path.read_text(encoding="utf-8"), max_length, prompt)
        except Exception as error:  # tokenizers raises the bare Exception
            message = f"{path} holds no tokenizer ({error}); index again"
            raise DamagedIndexError(message) from error

    def definition(self) -> str:
        """Return the JSON text of this tokenizer, truncation at the model's limit included."""
        return str(self._reading.to_str())

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids that the model reads of each text, special pieces included."""
        return [
            encoding.ids
            for start in range(0, len(texts), _BLOCK)
            for encoding in self._reading.encode_batch_fast(_readable(texts[start : start + _BLOCK]))
        ]

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return how many pieces each text has uncut, special pieces not counted: (n,) int64."""
        return np.fromiter(
            (
                len(encoding)
                for start in range(0, len(texts), _BLOCK)
                for encoding in self._cutting.encode_batch_fast(
                    _readable(texts[start : start + _BLOCK]), add_special_tokens=False
                )
            ),
            dtype=np.int64,
            count=len(texts),
        )

    def piece_offsets(self, texts: Sequence[str]) -> list[PieceOffsets]:
        """Return where each piece stands in its text, so that passages can be cut between pieces.

        Returns
        -------
        list of (t, 2) int64 arrays
            Start and end character of each piece, special pieces left out, nothing truncated.
        """
        return [
            np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            for start in range(0, len(texts), _BLOCK)
            for encoding in self._cutting.encode_batch(
                _readable(texts[start : start + _BLOCK]), add_special_tokens=False
            )
        ]

    def pieces(self, text: str) -> tuple[list[str], list[int], list[tuple[int, int]]]:
        """Return pieces, ids and character offsets as the model reads the text, special pieces included."""
        encoding = self._reading.encode(_readable([text])[0])
        return list(encoding.tokens), list(encoding.ids), list(encoding.offsets)

    def id_of(self, piece: str) -> int | None:
        """Return the id of a piece, or None where the vocabulary lacks it."""
        found: int | None = self._reading.token_to_id(piece)
        return found

    def piece_of(self, number: int) -> str | None:
        """Return the piece of an id, or None where there is none."""
        found: str | None = self._reading.id_to_token(number)
        return found


def _readable(texts: Sequence[str]) -> list[str]:
    """Replace lone surrogates, which cannot be passed on as UTF-8; offsets stay as they are."""
    return [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts]


#: What a tokenizer of an older form is made from.
_VOCABULARIES = ("vocab.*", "*.model", "*.vocab", "*.bpe", "bpe.codes", "tokenizer*.txt", "*.tiktoken")


def open_tokenizer(spec: "TransformerSpec") -> PieceTokenizer:
    """Return the tokenizer of a model that is not loaded, with the model's own limit.

    Raises
    ------
    ModelError
        If the model cannot be found or has no tokenizer.
    """
    # Queries need a tokenizer that is in the index, and nothing of models elsewhere.
    from indexer.contextual.checkpoint import find_checkpoint

    checkpoint = find_checkpoint(spec)
    path = checkpoint.transformer_folder / "tokenizer.json"
    limit, prompt = checkpoint.limit(spec.max_length), checkpoint.document_prompt(spec.document_prompt)
    if path.exists():
        try:
            return PieceTokenizer(path.read_text(encoding="utf-8"), limit, prompt)
        except Exception as error:  # tokenizers raises the bare Exception
            message = f"{path} holds no tokenizer ({str(error)[:200]}); fetch it again"
            raise ModelError(message) from error
    return PieceTokenizer(converted_definition(checkpoint), limit, prompt)


def converted_definition(checkpoint: "Checkpoint") -> str:
    """Return the `tokenizer.json` that transformers makes of an older vocabulary file.

    Raises
    ------
    ModelError
        If it cannot.
    """
    folder = checkpoint.transformer_folder
    if not any(path for pattern in _VOCABULARIES for path in folder.glob(pattern)):
        # The library would make a tokenizer that knows no word, and every text would read the same.
        message = f"{folder} has no tokenizer (no tokenizer.json, no vocab.txt, no *.model); fetch its files again"
        raise ModelError(message)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        return str(tokenizer.backend_tokenizer.to_str())
    except Exception as error:
        message = f"{checkpoint.name} has no tokenizer that can be used here (no tokenizer.json)"
        raise ModelError(message) from error
