"""The lens: what each token's state says at each layer, as the vocabulary items nearest to it.

A model with a language-model head is read through its own head: what would it predict if it stopped here
(nostalgebraist 2020, "the logit lens")? A model without one, such as the built-in sentence encoder, is read through
its input embeddings: which row of the table it started from is the state nearest to now? The answer says which.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.contextual.language_model import Head
from indexer.contextual.states import StateReader, TokenStates
from search.diagnostics.anisotropy import unit
from search.errors import DiagnosisError


class LensItem(NamedTuple):
    """A vocabulary item: its probability through a head, its cosine through the input embeddings."""

    piece: str
    score: float


@dataclass(frozen=True, slots=True)
class LensGrid:
    """Tokens by layers.

    Attributes
    ----------
    text, model
        What was read, and by which model.
    head
        What it was read through; `Head.NONE` is the input embeddings.
    explanation
        The same in one sentence, for people.
    pieces
        The t pieces, special ones included.
    cells
        For each layer 0 to L, for each piece, its nearest items, best first.
    """

    text: str
    model: str
    head: Head
    explanation: str
    pieces: tuple[str, ...]
    cells: tuple[tuple[tuple[LensItem, ...], ...], ...]


def lens(text: str, reader: StateReader, *, items: int = 3) -> LensGrid:
    """Look at a text through a model's head, or its input embeddings.

    Raises
    ------
    DiagnosisError
        If the text is empty, or the model has neither a head nor embeddings of its states' dimension.
    """
    if not text.strip():
        message = "the lens needs a text, found an empty one"
        raise DiagnosisError(message)
    if items < 1:
        message = f"the lens shows at least 1 item a cell, asked for {items}"
        raise DiagnosisError(message)
    states = reader.read(text)
    scores = _cosines(states, reader) if reader.head is Head.NONE else _softmax(reader.head_logits(states))
    count = min(items, scores.shape[-1])
    best = np.argsort(-scores, axis=-1, kind="stable")[..., :count]
    values = np.take_along_axis(scores, best, axis=-1)
    return LensGrid(
        text=text,
        model=reader.name,
        head=reader.head,
        explanation=_explanation(reader),
        pieces=states.pieces,
        cells=tuple(
            tuple(
                tuple(
                    LensItem(reader.piece_of(number), value)
                    for number, value in zip(numbers.tolist(), found.tolist(), strict=True)
                )
                for numbers, found in zip(row, row_values, strict=True)
            )
            for row, row_values in zip(best, values, strict=True)
        ),
    )


def _explanation(reader: StateReader) -> str:
    match reader.head:
        case Head.MASKED:
            return f"through the masked-language-model head of {reader.name}: what it would put in each place"
        case Head.CAUSAL:
            return f"through the language-model head of {reader.name}: what it would say next after each place"
        case Head.NONE:
            return (
                f"through the input embeddings: {reader.name} has no language-model head, so each state is compared "
                "with the rows that tokens start from, by cosine"
            )


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _cosines(states: TokenStates, reader: StateReader) -> NDArray[np.float64]:
    table = reader.input_embeddings
    if table.shape[1] != states.states.shape[-1]:
        message = (
            f"{reader.name} has no language-model head, and its input embeddings have {table.shape[1]} dimensions "
            f"where its states have {states.states.shape[-1]}: there is nothing to look through"
        )
        raise DiagnosisError(message)
    return np.asarray(unit(states.states) @ unit(table).T)
