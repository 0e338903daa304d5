"""All layers of a transformer at once: states pooled over texts, and states of words."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from indexer.contextual.batching import batches, padded
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import StateReader, open_states

Floats = NDArray[np.float32]

_BATCH_PIECES = 4096
_BATCH_TEXTS = 256
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class TransformerLayers:
    """One forward pass a text, every layer kept.

    Attributes
    ----------
    reader
        The transformer.
    """

    reader: StateReader

    def layer_states(self, texts: Sequence[str]) -> Floats:
        """Return the (1 + L, n, d) means over all pieces, special ones included, as `layer=N,pooling=mean` has it.

        Not scaled; a blank text is a row of zeros.
        """
        ids = self.reader.tokenizer.ids(texts)
        out = np.zeros((1 + self.reader.layers, len(texts), self.reader.dimension), np.float32)
        for rows, states in self._batches(ids):
            for row, state in zip(rows, states, strict=True):
                if texts[row].strip() and ids[row]:
                    out[:, row] = state[:, : len(ids[row])].mean(axis=1, dtype=np.float64)
        return out

    def words(self, text: str) -> list[str]:
        """Return the words of a text that the model reads, in small letters."""
        return [word for word, _ in self._places(text, self.reader.tokenizer.pieces(text)[2])]

    def word_states(self, texts: Sequence[str]) -> Iterator[tuple[int, Floats]]:
        """Yield each text's number and the (1 + L, w, d) states of its words, means over their pieces."""
        encoded = [self.reader.tokenizer.pieces(text) for text in texts]
        for rows, states in self._batches([ids for _, ids, _ in encoded]):
            for row, state in zip(rows, states, strict=True):
                places = self._places(texts[row], encoded[row][2])
                means = [state[:, pieces].mean(axis=1) for _, pieces in places]
                yield row, np.stack(means, axis=1) if means else state[:, :0]

    @staticmethod
    def _places(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[str, list[int]]]:
        """Return each word and its pieces; a word that no piece belongs to is left out."""
        word_at = np.full(len(text) + 1, -1)
        words = list(_WORD.finditer(text))
        for number, word in enumerate(words):
            word_at[word.start() : word.end()] = number
        pieces: dict[int, list[int]] = {}
        for place, (start, end) in enumerate(offsets):
            found = word_at[start:end]
            if len(found) and found.max() >= 0:
                pieces.setdefault(int(found.max()), []).append(place)
        return [(words[number].group().lower(), pieces[number]) for number in sorted(pieces)]

    def _batches(self, ids: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Floats]]:
        lengths = [len(each) for each in ids]
        for rows in batches(lengths, most_pieces=_BATCH_PIECES, most_texts=_BATCH_TEXTS):
            if not lengths[rows[0]]:
                continue
            array, mask = padded([ids[row] for row in rows], self.reader.pad_id)
            with torch.inference_mode():
                found = self.reader.model.base_model(
                    input_ids=torch.from_numpy(array),
                    attention_mask=torch.from_numpy(mask),
                    output_hidden_states=True,
                )
                states: Floats = torch.stack(list(found.hidden_states), dim=1).float().numpy()
            yield rows, states


def open_layers(spec: TransformerSpec | None = None) -> TransformerLayers:
    """Load a transformer for reading its layers; the built-in all-MiniLM-L6-v2 unless told otherwise.

    Raises
    ------
    ModelError
        As `indexer.contextual.states.open_states`.
    """
    reader = open_states(spec)
    # Nobody looks at the attentions here, and the fused attention takes little more than half the time.
    with suppress(ValueError, AttributeError):
        reader.model.set_attn_implementation("sdpa")
    return TransformerLayers(reader)
