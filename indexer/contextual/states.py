"""Inside a transformer: every layer's state of every piece, the attentions, and the language-model head.

Encoders pool these away; here they are what is looked at. Torch in fp32 on the CPU, with the attention
written out ("eager"), since the fused forms do not give the attention weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from indexer.contextual.batching import batches, padded
from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.language_model import Head, final_norm, load_with_head, mask_id
from indexer.contextual.tokenization import PieceTokenizer, open_tokenizer
from indexer.errors import ModelError

_BATCH_PIECES = 4096
_BATCH_TEXTS = 256

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Span(NamedTuple):
    """A word in a text: its first character and the one after its last."""

    start: int
    end: int


class Place(NamedTuple):
    """A word in its text."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class TokenStates:
    """One text as a transformer sees it: t pieces, L layers, d dimensions, a heads.

    Attributes
    ----------
    text
        The text.
    pieces
        The t pieces, special ones included.
    ids
        (t,) int64 piece numbers in the vocabulary.
    offsets
        (t, 2) int64 first and last-but-one character of each piece.
    special
        (t,) whether a piece stands for no character of the text ([CLS], [SEP]).
    input_rows
        (t, d) rows of the word-embedding matrix, before positions, types and normalisation.
    states
        (1 + L, t, d) float32: 0 is what the embeddings give, L the last layer.
    attentions
        (L, a, t, t) float32: how much a piece (third axis) takes from each (fourth axis).
    cut
        Whether the text is longer than what the model reads.
    """

    text: str
    pieces: tuple[str, ...]
    ids: Ints
    offsets: Ints
    special: Flags
    input_rows: Floats
    states: Floats
    attentions: Floats
    cut: bool

    def rows(self, span: Span) -> Ints:
        """Return the places of the pieces that hold a character of the span."""
        return rows_of(self.offsets, span)


def rows_of(offsets: Ints, span: Span) -> Ints:
    """Return which of the (t, 2) offsets share a character with the span."""
    start, end = offsets[:, 0], offsets[:, 1]
    return np.flatnonzero((np.minimum(end, span.end) > np.maximum(start, span.start)) & (end > start))


@dataclass(frozen=True, eq=False)
class StateReader:
    """A loaded transformer whose inside can be read. `open_states` makes one.

    Attributes
    ----------
    name
        The model's name.
    head
        Its language-model head.
    tokenizer
        Its tokenizer.
    mask_id
        The piece that stands for a hidden one: the model's mask, or the nearest thing it has to one.
    pad_id
        The piece that fills up batches.
    """

    name: str
    model: Any
    head: Head
    tokenizer: PieceTokenizer
    mask_id: int
    pad_id: int

    @property
    def layers(self) -> int:
        """Number L of layers after the embeddings."""
        return int(getattr(self.model.config, "num_hidden_layers", 0) or self.model.config.n_layers)

    @property
    def dimension(self) -> int:
        """Dimensions d of a state."""
        return int(self.model.config.hidden_size)

    @cached_property
    def input_embeddings(self) -> Floats:
        """The (V, d) word-embedding matrix: the one table of static vectors a transformer starts from."""
        matrix: Floats = self.model.get_input_embeddings().weight.detach().numpy()
        return matrix

    @property
    def mask_piece(self) -> str:
        """What stands for a piece that is hidden."""
        return self.piece_of(self.mask_id)

    @property
    def _core(self) -> Any:
        if getattr(self.model.config, "is_encoder_decoder", False):
            return self.model.get_encoder()
        return self.model.base_model

    def piece_of(self, number: int) -> str:
        """Return a piece by its number in the vocabulary ("" where the tokenizer has none)."""
        return self.tokenizer.piece_of(number) or ""

    def read(self, text: str) -> TokenStates:
        """Run one text and keep everything."""
        pieces, ids, offsets = self.tokenizer.pieces(text)
        if not ids:
            # Models without special pieces have nothing to run for an empty text.
            message = f"{self.name} finds no piece in {text!r}; give a text with words"
            raise ModelError(message)
        array = np.array([ids], dtype=np.int64)
        with torch.inference_mode():
            found = self._core(
                input_ids=torch.from_numpy(array),
                attention_mask=torch.ones(array.shape, dtype=torch.int64),
                output_hidden_states=True,
                output_attentions=True,
            )
        places = np.array(offsets, dtype=np.int64).reshape(-1, 2)
        return TokenStates(
            text=text,
            pieces=tuple(pieces),
            ids=array[0],
            offsets=places,
            special=places[:, 0] == places[:, 1],
            input_rows=self.input_embeddings[array[0]],
            states=torch.cat(list(found.hidden_states)).float().numpy(),
            attentions=torch.cat(list(found.attentions)).float().numpy(),
            cut=int(self.tokenizer.lengths([text])[0]) > self.tokenizer.max_length - self._special_count,
        )

    @property
    def _special_count(self) -> int:
        return self.tokenizer.special_tokens

    def masked_states(self, states: TokenStates, hidden: Sequence[Sequence[int] | Ints]) -> Floats:
        """Run variants of a text, each with some of its pieces masked, in one batch.

        Parameters
        ----------
        states
            The text as `read` gave it.
        hidden
            m lists of places of pieces to mask.

        Returns
        -------
        (m, 1 + L, t, d) float32
        """
        ids = np.repeat(states.ids[None], len(hidden), axis=0)
        for row, places in enumerate(hidden):
            ids[row, np.asarray(places, dtype=np.int64)] = self.mask_id
        shape = (0, 1 + self.layers, len(states.ids), self.dimension)
        nothing = np.zeros(shape, dtype=np.float32)
        size = max(1, _BATCH_PIECES // max(1, len(states.ids)))
        blocks = [ids[start : start + size] for start in range(0, len(ids), size)]
        return np.concatenate([nothing, *(self._run(block, np.ones_like(block)) for block in blocks)])

    def word_states(self, places: Sequence[Place]) -> Floats:
        """Return the state of one word in each of n texts, by layer: the mean over the word's pieces.

        Returns
        -------
        (1 + L, n, d) float32

        Raises
        ------
        ModelError
            If no piece of a word is among those that the model reads.
        """
        encoded = [self.tokenizer.pieces(place.text) for place in places]
        rows = [
            rows_of(np.array(offsets, dtype=np.int64).reshape(-1, 2), place.span)
            for place, (_, _, offsets) in zip(places, encoded, strict=True)
        ]
        for place, found in zip(places, rows, strict=True):
            if not len(found):
                word = place.text[place.span.start : place.span.end]
                message = f"{self.name} reads no piece of {word!r} in {place.text[:60]!r}; shorten the text"
                raise ModelError(message)
        ids = [each[1] for each in encoded]
        out = np.empty((1 + self.layers, len(places), self.dimension), dtype=np.float32)
        for batch, states in self._batches(ids):
            for number, text in enumerate(batch):
                out[:, text] = states[number][:, rows[text]].mean(axis=1)
        return out

    def pooled_states(self, texts: Sequence[str]) -> Floats:
        """Return each text's mean over all its pieces, special ones included, by layer: (1 + L, n, d) float32."""
        ids = self.tokenizer.ids(texts)
        out = np.empty((1 + self.layers, len(texts), self.dimension), dtype=np.float32)
        for batch, states in self._batches(ids):
            for number, text in enumerate(batch):
                out[:, text] = states[number][:, : len(ids[text])].mean(axis=1)
        return out

    def piece_states(self, texts: Sequence[str]) -> Iterator[tuple[int, Ints, Floats]]:
        """Yield each text's number, its (t, 2) offsets and (1 + L, t, d) states, longest texts first.

        Special pieces are left out.
        """
        encoded = [self.tokenizer.pieces(text) for text in texts]
        for batch, states in self._batches([ids for _, ids, _ in encoded]):
            for number, text in enumerate(batch):
                offsets = np.array(encoded[text][2], dtype=np.int64).reshape(-1, 2)
                ordinary = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
                yield text, offsets[ordinary], states[number][:, ordinary]

    def _batches(self, ids: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Floats]]:
        lengths = [len(each) for each in ids]
        for batch in batches(lengths, most_pieces=_BATCH_PIECES, most_texts=_BATCH_TEXTS):
            yield batch, self._run(*padded([ids[row] for row in batch], self.pad_id))

    def _run(self, ids: Ints, mask: Ints) -> Floats:
        """Return the (n, 1 + L, t, d) states of (n, t) ids."""
        with torch.inference_mode():
            found = self._core(
                input_ids=torch.from_numpy(ids),
                attention_mask=torch.from_numpy(mask),
                output_hidden_states=True,
            )
            states: Floats = torch.stack(list(found.hidden_states), dim=1).float().numpy()
        return states

    def head_logits(self, states: TokenStates) -> Floats:
        """Return what the head says of each layer's states: (1 + L, t, V) float32.

        The last layer's are the model's own predictions; of an earlier layer they are what the model would
        say if it stopped there (nostalgebraist 2020, "the logit lens"). In models that normalise between the
        last layer and the head, earlier layers pass that norm too.

        Raises
        ------
        ModelError
            If the model has no head.
        """
        if self.head is Head.NONE:
            message = f"{self.name} has no language-model head; compare with its input embeddings instead"
            raise ModelError(message)
        hidden = torch.from_numpy(states.states).clone()
        norm = final_norm(self._core)
        parts = []
        with torch.inference_mode():
            for layer, state in enumerate(hidden):
                given = state[None]
                # The last of the hidden states has passed the norm already.
                parts.append(self._through_head(norm(given) if norm and layer < self.layers else given))
        return np.concatenate(parts)

    def _through_head(self, given: Any) -> Floats:
        """Run the model's own path from its last state to the logits, with our states in that place."""

        def put_in_place(_module: object, _inputs: object, output: Any) -> Any:
            output["last_hidden_state"] = given
            return output

        # The body runs on a short dummy: heads differ between models, the hand-over of states does not.
        ids = torch.full(given.shape[:2], self.pad_id, dtype=torch.int64)
        handle = self._core.register_forward_hook(put_in_place)
        try:
            logits: Floats = self.model(input_ids=ids, return_dict=True).logits.float().numpy()
        finally:
            handle.remove()
        return logits


def open_states(spec: TransformerSpec | None = None) -> StateReader:
    """Load a transformer for looking inside; the built-in all-MiniLM-L6-v2 unless told otherwise.

    A model whose configuration names a language-model head, and whose weights hold it, is loaded with it.
    `layer`, `pooling` and prompts of the spec are of no effect here.

    Raises
    ------
    ModelError
        If it cannot be found or loaded, is a pickle that is not trusted, or has no fast tokenizer.
    """
    spec = spec or TransformerSpec()
    checkpoint = find_checkpoint(spec)
    tokenizer = open_tokenizer(spec)
    head, model = load_with_head(checkpoint)
    return StateReader(
        name=checkpoint.name,
        model=model,
        head=head,
        tokenizer=tokenizer,
        mask_id=mask_id(checkpoint.transformer_folder, tokenizer),
        pad_id=int(model.config.pad_token_id or 0),
    )
