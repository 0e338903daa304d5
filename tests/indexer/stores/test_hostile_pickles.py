"""Whoosh keeps pickles in its files: a hostile one in each place runs nothing and is reported as damage."""

import gc
import os
import pickle
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import whoosh.codec.whoosh3
import whoosh.filedb.fileindex
import whoosh.filedb.structfile

from indexer.errors import DamagedIndexError
from indexer.stores import lexical
from indexer.stores.restricted_pickle import restricted_loaders

TEXTS = [f"common shared river{number} {'frequent ' * 3}" for number in range(400)]


@pytest.fixture(autouse=True)
def _closed_quietly() -> Iterator[None]:
    """Whoosh leaves files open when it stumbles over what is in them: they are closed here, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.mark),)


def is_header(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], int)


def is_directory(value: object) -> bool:
    return isinstance(value, dict) and bool(value)


def is_segments(value: object) -> bool:
    return isinstance(value, list)


def search(folder: Path) -> None:
    store = lexical.LexicalStore.open(folder)
    for query in ("common", "river7", "frequent shared"):
        store.search(query, 10)
        store.explain(query, 7)


@pytest.mark.parametrize("where", ["schema", "segments", "directory", "options", "block header", "block"])
def test_a_hostile_pickle_runs_nothing(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, folder = tmp_path / "ran", tmp_path / "lexical"
    folder.mkdir()
    hostile = Hostile(mark)
    dump, dumps = pickle.dump, pickle.dumps
    written = []

    def poisoned(chosen: Callable[[object], bool]) -> Callable[..., Any]:
        def write(value: object, *rest: Any) -> Any:
            function = dump if rest and hasattr(rest[0], "write") else dumps
            if chosen(value):
                written.append(value)
                return function(hostile, *rest)
            return function(value, *rest)

        return write

    structfile, codec = whoosh.filedb.structfile, whoosh.codec.whoosh3
    with monkeypatch.context() as patch:
        match where:
            case "schema":
                # Ours is handed over on opening, so what is written there is never even looked at.
                patch.setattr(whoosh.index.pickle, "dumps", poisoned(lambda _: True))
            case "segments":
                patch.setattr(structfile, "dump", poisoned(is_segments))
            case "directory":
                patch.setattr(structfile, "dump", poisoned(is_directory))
            case "options":
                patch.setattr(structfile, "dump", poisoned(lambda value: value == {}))
            case "block header":
                patch.setattr(codec, "dumps", poisoned(is_header))
            case _:
                patch.setattr(codec, "dumps", poisoned(lambda value: not is_header(value)))
        # Whoosh reads some of it back while it writes: refused there already.
        with suppress(pickle.UnpicklingError):
            lexical.build(TEXTS, folder)
    assert not mark.exists()
    assert written or where == "schema"
    if where == "schema":
        search(folder)
    else:
        with pytest.raises(DamagedIndexError, match=r"damaged.*(refused|Empty|UnpicklingError)"):
            search(folder)
    assert not mark.exists()


def test_a_hostile_pickle_among_inlined_postings_runs_nothing(tmp_path: Path) -> None:
    info = whoosh.codec.whoosh3.W3TermInfo
    record = info._struct.pack(1, 1.0, 1, 1, 1, 1.0, 0, 0) + pickle.dumps(Hostile(tmp_path / "ran"), 2)
    with pytest.raises(pickle.UnpicklingError, match="refused"):
        info.from_bytes(record)
    assert not (tmp_path / "ran").exists()


def test_the_hostile_pickle_of_these_tests_is_one(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Hostile(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


def test_no_class_but_the_named_ones_is_loaded() -> None:
    loads, _ = restricted_loaders({("collections", "OrderedDict")})
    assert loads(pickle.dumps({"a": (1, b"x", None, [2.5])}, 2)) == {"a": (1, b"x", None, [2.5])}
    for name in ("os\nsystem", "builtins\neval", "builtins\ngetattr", "pickle\nloads", "collections\nCounter"):
        with pytest.raises(pickle.UnpicklingError, match="refused to load"):
            loads(b"c" + name.encode() + b"\n.")
    with pytest.raises(pickle.UnpicklingError, match="refused"):
        loads(b"\x80\x04\x8c\x02os\x8c\x06system\x93.")
    with pytest.raises(pickle.UnpicklingError, match="refused"):
        loads(b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.__init__\x93.")
    with pytest.raises(pickle.UnpicklingError, match="refused to encode as rot13"):
        loads(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.")


def test_extension_codes_load_nothing() -> None:
    loads, _ = restricted_loaders(())
    with pytest.raises((pickle.UnpicklingError, ValueError)):
        loads(b"\x82" + struct.pack("<B", 7) + b".")


def test_the_restriction_reads_every_honest_index(tmp_path: Path) -> None:
    lexical.build(TEXTS, tmp_path)
    search(tmp_path)
    assert len(lexical.LexicalStore.open(tmp_path).search("common", 500)) == 400
