"""Reading pickles that somebody else may have written: every class but a few named ones is refused."""

import io
import pickle
from collections.abc import Callable, Collection
from typing import Any, BinaryIO


def _encode_latin1(text: str, encoding: str) -> bytes:
    # How pickle protocol 2 spells bytes; any other encoding would be somebody's own idea.
    if encoding != "latin1":
        message = f"refused to encode as {encoding}"
        raise pickle.UnpicklingError(message)
    return text.encode("latin-1")


def restricted_loaders(
    allowed: Collection[tuple[str, str]],
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return stand-ins for `pickle.loads` and `pickle.load` that load no class but the allowed (module, name) pairs.

    They raise `pickle.UnpicklingError` at any other; further keywords of pickle's functions are ignored.
    """

    class Refusing(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) in allowed:
                return super().find_class(module, name)
            if (module, name) == ("_codecs", "encode"):
                return _encode_latin1
            message = f"refused to load {module}.{name}"
            raise pickle.UnpicklingError(message)

    def loads(data: bytes, **_: object) -> Any:
        return Refusing(io.BytesIO(data)).load()

    def load(stream: BinaryIO, **_: object) -> Any:
        return Refusing(stream).load()

    return loads, load
