"""The transformer that an index's encoder was made from: its tokens have states, which the encoder pools away."""

from functools import cache

from indexer.contextual.checkpoint import BUILT_IN_NAME, TransformerSpec, find_checkpoint
from indexer.contextual.space import Space
from indexer.encoder import Encoder
from search.diagnostics.explain_context import AlignmentModel
from search.errors import DiagnosisError


def source_model(encoder: Encoder) -> AlignmentModel:
    """Open the model that an encoder was made from, with the layer, prompts and length that the encoder reads with.

    Raises
    ------
    DiagnosisError
        If the encoder is no transformer, or the model in that place has other weights now.
    ModelError
        If the model cannot be found or loaded.
    """
    # Compiled encoders keep their space in a description, torch ones beside the model.
    space = getattr(encoder, "space", None) or getattr(getattr(encoder, "description", None), "space", None)
    if not isinstance(space, Space):
        message = "its encoder is no transformer, so its tokens cannot be looked at one by one"
        raise DiagnosisError(message)
    return _open(space)


@cache
def _open(space: Space) -> AlignmentModel:
    spec = TransformerSpec("" if space.model == BUILT_IN_NAME else space.model, max_length=space.max_length)
    if find_checkpoint(spec).weights_hash != space.weights_sha256:
        message = f"{space.model} has other weights now than when the index was built; index again, or put them back"
        raise DiagnosisError(message)
    from indexer.contextual.states import open_states

    return AlignmentModel(
        open_states(spec),
        layer=-1 if space.layer is None else space.layer,
        query_prompt=space.query_prompt,
        document_prompt=space.document_prompt,
    )
