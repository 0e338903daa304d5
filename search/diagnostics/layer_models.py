"""Models whose layers can be read, opened by folder or id: transformers, and ELMo by its published files."""

from functools import cache
from pathlib import Path

from search.diagnostics.layer_survey import LayerReader
from search.diagnostics.word_senses import open_reader


@cache
def open_layer_model(model: str = "") -> LayerReader:
    """Open a model for reading all its layers; the built-in one where no name is given.

    Raises
    ------
    ModelError
        If it cannot be found or read.
    """
    from indexer.contextual.elmo_layers import ElmoLayers, is_elmo

    if model and is_elmo(Path(model)):
        from indexer.contextual.elmo import ElmoSpec, open_elmo

        return ElmoLayers(open_elmo(ElmoSpec(model)))
    from indexer.contextual.layer_reader import TransformerLayers

    return TransformerLayers(open_reader(model))
