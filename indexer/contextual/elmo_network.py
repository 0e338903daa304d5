"""The computation of ELMo in torch: characters to token vectors, token vectors through two stacks of LSTMs.

Peters et al. 2018, "Deep contextualized word representations"; the LSTM with clipped cells and a projection
is that of Sak et al. 2014 as TensorFlow's LSTMCell computes it, whose gates stand in the order input,
candidate, forget, output and whose forget gate has 1 added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from indexer.contextual.elmo_weights import Arrays, ElmoOptions, cell_name

_BEGIN_SENTENCE, _END_SENTENCE, _BEGIN_WORD, _END_WORD, _PAD = 256, 257, 258, 259, 260


class CellState(NamedTuple):
    """Where an LSTM stands: (n, h) cells and (n, p) last output."""

    cells: Tensor
    output: Tensor


#: (direction, layer) -> state
NetworkState = Mapping[tuple[int, int], CellState]


def character_ids(tokens: Sequence[str], width: int) -> NDArray[np.int64]:
    """Return the (n, width) ids of the tokens' UTF-8 bytes between marks of begin and end of word, padded."""
    ids = np.full((len(tokens), width), _PAD, dtype=np.int64)
    for row, token in enumerate(tokens):
        marked = [_BEGIN_WORD, *token.encode("utf-8", "ignore")[: width - 2], _END_WORD]
        ids[row, : len(marked)] = marked
    return ids


def boundary_ids(width: int) -> NDArray[np.int64]:
    """Return the (2, width) ids of the tokens that begin and end every sentence."""
    ids = np.full((2, width), _PAD, dtype=np.int64)
    for row, mark in enumerate((_BEGIN_SENTENCE, _END_SENTENCE)):
        ids[row, :3] = (_BEGIN_WORD, mark, _END_WORD)
    return ids


@dataclass(frozen=True, eq=False)
class ElmoNetwork:
    """Options and weights, ready to compute."""

    options: ElmoOptions
    weights: Mapping[str, Tensor]

    @classmethod
    def of(cls, options: ElmoOptions, arrays: Arrays) -> "ElmoNetwork":
        """Take the arrays into torch."""
        return cls(options, {name: torch.from_numpy(array) for name, array in arrays.items()})

    def token_vectors(self, ids: NDArray[np.int64]) -> Tensor:
        """Return the (n, p) context-free vectors of tokens, given as (n, c) character ids."""
        weights, options = self.weights, self.options
        characters = functional.embedding(torch.from_numpy(ids), weights["char_embed"]).transpose(1, 2)
        activate = torch.relu if options.activation == "relu" else torch.tanh
        found = []
        for number in range(len(options.filters)):
            kernel = weights[f"CNN/W_cnn_{number}"][0].permute(2, 1, 0)
            convolved = functional.conv1d(characters, kernel, weights[f"CNN/b_cnn_{number}"])
            found.append(activate(convolved.max(dim=2).values))
        vectors = torch.cat(found, dim=1)
        for number in range(options.highways):
            name = f"CNN_high_{number}"
            carry = torch.sigmoid(vectors @ weights[f"{name}/W_carry"] + weights[f"{name}/b_carry"])
            moved = torch.relu(vectors @ weights[f"{name}/W_transform"] + weights[f"{name}/b_transform"])
            vectors = carry * moved + (1 - carry) * vectors
        if options.projects_filters:
            vectors = vectors @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
        return vectors

    def layers(
        self, tokens: Tensor, lengths: Sequence[int], state: NetworkState | None = None
    ) -> tuple[Tensor, NetworkState]:
        """Return every layer's states and where the LSTMs stand after each sentence's last token.

        Parameters
        ----------
        tokens
            (n, t, p) token vectors, sentence boundaries included, padded.
        lengths
            Tokens of each sentence, boundaries included.
        state
            Where the LSTMs start; None: from zero.

        Returns
        -------
        (1 + L, n, t, 2 p) states, forward beside backward, and the state.
        """
        steps = torch.arange(tokens.shape[1])
        ends = torch.tensor(lengths)[:, None]
        alive = steps < ends
        # Reversing inside each sentence's own length keeps its padding at the end.
        reverse = torch.where(alive, ends - 1 - steps, steps)
        stacks, after = [], {}
        for direction in range(2):
            current = tokens if direction == 0 else _reorder(tokens, reverse)
            found = [current]
            for layer in range(self.options.layers):
                key = (direction, layer)
                start = None if state is None else state[key]
                out, after[key] = self._run(key, current, alive, start)
                current = out + current if self.options.skip_connections and layer else out
                found.append(current)
            stacks.append(found if direction == 0 else [_reorder(each, reverse) for each in found])
        joined = [torch.cat(pair, dim=-1) for pair in zip(*stacks, strict=True)]
        return torch.stack(joined), after

    def _run(
        self, key: tuple[int, int], inputs: Tensor, alive: Tensor, start: CellState | None
    ) -> tuple[Tensor, CellState]:
        """Run one LSTM over (n, t, p) inputs; sentences that are over keep their state."""
        options, name = self.options, cell_name(*key)
        p, h = options.projection_dimension, options.cell_dimension
        from_input, from_output = self.weights[f"{name}/W_0"][:p], self.weights[f"{name}/W_0"][p:]
        # What the inputs add to the gates does not depend on the state: one product for all steps.
        given = inputs @ from_input + self.weights[f"{name}/B"]
        n = len(inputs)
        cells, output = start or CellState(torch.zeros(n, h), torch.zeros(n, p))
        outputs = []
        for step in range(inputs.shape[1]):
            gates = given[:, step] + output @ from_output
            enter, candidate, forget, leave = gates.split(h, dim=1)
            moved = torch.sigmoid(forget + 1) * cells + torch.sigmoid(enter) * torch.tanh(candidate)
            if options.cell_clip:
                moved = moved.clamp(-options.cell_clip, options.cell_clip)
            out = torch.sigmoid(leave) * torch.tanh(moved)
            if options.projects_cells:
                out = out @ self.weights[f"{name}/W_P_0"]
                if options.projection_clip:
                    out = out.clamp(-options.projection_clip, options.projection_clip)
            here = alive[:, step, None]
            cells, output = torch.where(here, moved, cells), torch.where(here, out, output)
            outputs.append(out)
        return torch.stack(outputs, dim=1), CellState(cells, output)


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    return values.gather(1, order[:, :, None].expand_as(values))
