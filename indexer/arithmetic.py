"""How much arithmetic encoding takes: multiply-adds, counted from the shape of a model and the lengths of texts.

A multiply-add is one product added to a sum: two floating-point operations. What is counted are the matrix products;
normalisation, activations, pooling and whitening (d multiply-adds a dimension kept) are left out, and looking up
embeddings is free. The count is the architecture's: the same for every precision, thread and machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

#: Families whose blocks are what `TransformerShape` counts: four square projections, attention, two wide ones. Gated
#: or grouped ones (T5 1.1, ModernBERT, LLaMA) are not: for those nothing is said rather than something wrong.
_PLAIN = frozenset(
    {
        "albert",
        "bert",
        "camembert",
        "data2vec-text",
        "distilbert",
        "electra",
        "ernie",
        "gpt2",
        "mpnet",
        "roberta",
        "xlm-roberta",
    }
)
#: What a size is called -> its names in the configurations of those families.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "layers": ("num_hidden_layers", "n_layers", "n_layer"),
        "hidden": ("hidden_size", "dim", "n_embd"),
        "intermediate": ("intermediate_size", "hidden_dim", "n_inner"),
    }
)


class Shape(Protocol):
    """What of a model decides its arithmetic."""

    def multiply_adds(self, lengths: ArrayLike) -> int:
        """Return the multiply-adds of encoding texts of so many tokens, all texts together."""


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """The sizes of a transformer that decide its arithmetic: layers run, hidden size h, intermediate size i."""

    layers: int
    hidden: int
    intermediate: int

    @classmethod
    def of_config(cls, config: Mapping[str, Any], *, layers: int | None = None) -> Self | None:
        """Return the shape that a model's `config.json` states, None where it is of a kind not counted here.

        Parameters
        ----------
        config
            The configuration.
        layers
            Layers run, where that is not all of them.
        """
        if config.get("model_type") not in _PLAIN:
            return None
        sizes = {size: next((config[name] for name in names if config.get(name)), 0) for size, names in _NAMES.items()}
        hidden = int(sizes["hidden"])
        # GPT-2's configuration leaves out an intermediate size of four times the hidden one.
        intermediate = int(sizes["intermediate"] or 4 * hidden)
        run = int(sizes["layers"]) if layers is None else min(layers, int(sizes["layers"]))
        return cls(run, hidden, intermediate) if hidden else None

    def multiply_adds(self, lengths: ArrayLike) -> int:
        """Return the multiply-adds of encoding texts of so many pieces, special ones included, all texts together.

        A layer takes, for n pieces, 4 n h^2 (query, key, value and output projections) + 2 n h i (both feed-forward
        products) + 2 n^2 h (attention scores, and the sums they weigh).

        Examples
        --------
        Two pieces, one layer, h = 3, i = 5: 4*2*9 + 2*2*3*5 + 2*4*3 = 72 + 60 + 24.

        >>> TransformerShape(1, 3, 5).multiply_adds([2])
        156
        """
        pieces = np.asarray(lengths, np.int64)
        linear = 4 * self.hidden**2 + 2 * self.hidden * self.intermediate
        square = 2 * self.hidden
        return self.layers * (linear * int(pieces.sum()) + square * int((pieces**2).sum()))


@dataclass(frozen=True, slots=True)
class RecurrentShape:
    """The sizes of ELMo's two LSTMs: layers of each, cells h, outputs p. Vectors of tokens are made once and free."""

    layers: int
    cells: int
    outputs: int

    def multiply_adds(self, lengths: ArrayLike) -> int:
        """Return the multiply-adds of texts of so many tokens; both marks of a sentence's ends are read too.

        A step takes 8 p h (input and state into four gates) and, where outputs are fewer than cells, h p more.
        """
        tokens = np.asarray(lengths, np.int64) + 2
        step = 8 * self.outputs * self.cells + (self.cells * self.outputs if self.outputs < self.cells else 0)
        return 2 * self.layers * step * int(tokens.sum())


def averaging_multiply_adds(words: int, dimension: int) -> int:
    """Return the multiply-adds of averaging so many known words: each one's vector, times its weight, is added."""
    return words * dimension
