"""Torch modules from piece ids to one unit vector a text: what runs as the reference and what is compiled."""

from typing import Any

import torch
from torch import Tensor, nn


class ModelOutput(nn.Module):  # type: ignore[misc]
    """A SentenceTransformer's own output, through all its modules, scaled to unit length."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return (n, d) unit vectors of (n, t) ids under an (n, t) mask."""
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        for module in self.model:
            features = module(features)
        return nn.functional.normalize(features["sentence_embedding"], dim=-1)


class LayerOutput(nn.Module):  # type: ignore[misc]
    """One layer of a transformer, pooled over the pieces, scaled to unit length."""

    def __init__(self, model: Any, layer: int, pooling: str) -> None:
        super().__init__()
        self.model = model
        self.layer = layer
        self.pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return (n, d) unit vectors of (n, t) ids under an (n, t) mask."""
        states = self.model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True).hidden_states
        return nn.functional.normalize(pool(states, self.layer, attention_mask, self.pooling), dim=-1)


def pool(states: Any, layer: int, mask: Tensor, pooling: str) -> Tensor:
    """Pool one layer of hidden states, each (n, t, d), under an (n, t) mask: (n, d).

    `first-last` is the mean of the first layer after the embeddings and the chosen one (Su et al. 2021,
    "Whitening Sentence Representations").
    """
    if pooling == "first-last":
        return (mean(states[min(1, layer)], mask) + mean(states[layer], mask)) / 2
    return POOLERS[pooling](states[layer], mask)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """Average over the pieces under the mask."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def first(states: Tensor, mask: Tensor) -> Tensor:
    """Take the first piece ([CLS])."""
    return states[:, 0]


def largest(states: Tensor, mask: Tensor) -> Tensor:
    """Take the largest value of each dimension under the mask."""
    return states.masked_fill(mask.unsqueeze(-1) == 0, torch.finfo(states.dtype).min).max(1).values


POOLERS = {"mean": mean, "cls": first, "max": largest}


def sentence_module(model: Any, layer: int | None, pooling: str) -> nn.Module:
    """Return the module that makes vectors in the asked way; `layer` None is the model's own output."""
    if layer is None:
        return ModelOutput(model)
    return LayerOutput(model[0].auto_model, layer, pooling)
