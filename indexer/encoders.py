"""Encoder folders: which module reads which kind."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from indexer.encoder import Encoder
from indexer.errors import REBUILD, DamagedIndexError
from indexer.manifest import load_json

#: Kind in `encoder.json` -> the module whose `load(folder)` opens it, imported when it is needed.
LOADERS: Mapping[str, str] = MappingProxyType(
    {
        "averaged": "indexer.static.averaging",
        "token_table": "indexer.static.token_tables",
        "compiled": "indexer.contextual.compiled",
        "transformer": "indexer.contextual.transformer",
        "elmo": "indexer.contextual.elmo",
    }
)


def open_encoder(folder: Path) -> Encoder:
    """Open the encoder that `Encoder.save` wrote into a folder.

    Raises
    ------
    DamagedIndexError
        If the folder holds no encoder, one of an unknown kind, or altered files.
    """
    kind = str(load_json(folder / "encoder.json").get("kind"))
    if kind not in LOADERS:
        known = ", ".join(LOADERS)
        message = f"{folder.parent.name}/encoder is of kind {kind!r}, known are {known}; build it anew: {REBUILD}"
        raise DamagedIndexError(message)
    encoder: Encoder = import_module(LOADERS[kind]).load(folder)
    return encoder
