"""Whoosh keeps pickles in its files: a hostile one in each place runs nothing and is reported as damage."""

import gc
import marshal
import os
import pickle
import struct
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import whoosh.codec.whoosh3
import whoosh.columns
import whoosh.fields
import whoosh.filedb.structfile
import whoosh.formats
import whoosh.index

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


def search(folder: Path) -> None:
    store = lexical.LexicalStore.open(folder)
    for query in ("common", "river7", "frequent shared"):
        store.search(query, 10)
        store.explain(query, 7)


def is_header(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], int)


def is_block(value: object) -> bool:
    return isinstance(value, tuple) and not is_header(value)


def is_directory(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all("offset" in one for one in value.values())


def is_extras(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and not is_directory(value)


def is_segments(value: object) -> bool:
    return isinstance(value, list) and bool(value)


STRUCTFILE, CODEC = whoosh.filedb.structfile, whoosh.codec.whoosh3
#: Place -> the writer's function that fills it, and which of the values that it writes belong there.
PLACES: dict[str, tuple[Any, str, Callable[[object], bool]]] = {
    "segments": (STRUCTFILE, "dump", is_segments),
    "deletions": (STRUCTFILE, "dump", is_segments),
    "directory": (STRUCTFILE, "dump", is_directory),
    "options": (STRUCTFILE, "dump", lambda value: value == {}),
    "extras of a table": (STRUCTFILE, "dump", is_extras),
    "block header": (CODEC, "dumps", is_header),
    "block": (CODEC, "dumps", is_block),
    "compressed block": (CODEC, "dumps", is_block),
}


@pytest.mark.parametrize("where", PLACES)
def test_a_hostile_pickle_in_a_file_runs_nothing(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lexical"
    folder.mkdir()
    module, name, chosen = PLACES[where]
    honest = getattr(module, name)
    long = where == "compressed block"  # the writer compresses from 80 bytes on
    mark = tmp_path / ("ran" * 30 if long else "ran")
    hostile = Hostile(mark) if long or where != "block" else Hostile(Path("ran"))
    written = 0

    def poisoned(value: Any, *rest: Any) -> Any:
        nonlocal written
        if not chosen(value):
            return honest(value, *rest)
        written += 1
        if where == "deletions":
            value[0]._deleted = hostile
            return honest(value, *rest)
        return honest(hostile, *rest)

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, poisoned)
        lexical.build(TEXTS, folder)
    assert written
    assert b"mkdir" in b"".join(path.read_bytes() for path in folder.iterdir()) or long
    refused(folder)
    assert not mark.exists()
    assert not (tmp_path / "ran").exists()


def refused(folder: Path) -> None:
    with pytest.raises(DamagedIndexError) as caught:
        search(folder)
    said = str(caught.value)
    assert said.startswith("the lexical index lexical/ is damaged")
    assert f"refused to load {os.mkdir.__module__}.mkdir" in said
    assert "\n" not in said


def test_a_hostile_pickle_among_inlined_postings_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoosh inlines the postings of no term of ours, but reads them where a file says that it did.
    mark, folder = tmp_path / "ran", tmp_path / "lexical"
    folder.mkdir()
    honest = CODEC.W3TermInfo.to_bytes

    def inlined(info: Any) -> bytes:
        info._inlined = Hostile(mark)
        return bytes(honest(info))

    with monkeypatch.context() as patch:
        patch.setattr(CODEC.W3TermInfo, "to_bytes", inlined)
        lexical.build(TEXTS, folder)
    refused(folder)
    assert not mark.exists()


def test_a_hostile_pickle_in_the_schema_is_not_even_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, folder = tmp_path / "ran", tmp_path / "lexical"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(whoosh.index.pickle, "dumps", lambda *_: pickle.dumps(Hostile(mark), 2))
        lexical.build(TEXTS, folder)
    search(folder)
    with pytest.raises(pickle.UnpicklingError, match="refused"):
        whoosh.index.open_dir(str(folder), readonly=True)
    assert not mark.exists()


def test_a_hostile_pickle_in_a_stored_field_runs_nothing(tmp_path: Path) -> None:
    # Ours stores no field: a column of pickled values, compressed in blocks, whose headers are pickles too.
    mark = tmp_path / "ran"
    index = whoosh.index.create_in(str(tmp_path), whoosh.fields.Schema(content=whoosh.fields.STORED))
    writer = index.writer()
    writer.add_document(content=Hostile(mark))
    writer.commit()
    reader = index.reader()
    with pytest.raises(pickle.UnpicklingError, match="refused"):
        reader.stored_fields(0)
    reader.close()
    index.close()
    assert not mark.exists()


@pytest.mark.parametrize("identity", ["../../etc/passwd", "/etc/passwd"])
def test_a_segment_outside_the_folder_is_not_opened(
    identity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lexical"
    folder.mkdir()
    honest = STRUCTFILE.dump

    def elsewhere(value: Any, *rest: Any) -> None:
        if is_segments(value):
            value[0].indexname = identity
        honest(value, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(STRUCTFILE, "dump", elsewhere)
        lexical.build(TEXTS, folder)
    with pytest.raises(DamagedIndexError, match="no file in it"):
        search(folder)


def test_pickles_are_read_in_the_tested_places_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = set()

    def noted(read: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*given: Any, **named: Any) -> Any:
            frames = [frame for frame in traceback.extract_stack()[:-1] if frame.name != "read_pickle"]
            places.add((Path(frames[-1].filename).name, frames[-1].name))
            return read(*given, **named)

        return noting

    for module, name in [(CODEC, "loads"), (whoosh.columns, "loads"), (whoosh.formats, "loads"), (STRUCTFILE, "load")]:
        monkeypatch.setattr(module, name, noted(getattr(module, name)))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lexical.build(TEXTS, tmp_path / "a")
    search(tmp_path / "a")
    numbers = np.arange(len(TEXTS))
    numbers[3] = -1
    lexical.update(tmp_path / "a", tmp_path / "b", numbers, removed=[TEXTS[3]], added=[(3, "common okapi")])
    search(tmp_path / "b")
    assert places == {
        ("index.py", "read"),
        ("compound.py", "__init__"),
        ("filetables.py", "_read_extras"),
        ("whoosh3.py", "_goto"),
        ("whoosh3.py", "_read_data"),
    }


def test_no_module_of_whoosh_holds_an_open_unpickler() -> None:
    functions = (pickle.loads, pickle.load, marshal.loads, marshal.load)
    held = {
        (name, attribute)
        for name, module in list(sys.modules.items())
        if name.startswith("whoosh")
        for attribute, value in vars(module).items()
        if value is pickle or any(value is function for function in functions)
    }
    # The one is of formats before Whoosh 3, whose readers are taken off; the other reads back what a writer that
    # runs out of memory has just put aside.
    assert held <= {("whoosh.util.loading", "pickle"), ("whoosh.externalsort", "load")}
    assert not whoosh.index.toc_loaders


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
