"""Whether an index is whole: every file, every count, every vector; and what to do about what is not."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from indexer.encoded import EncodedTexts
from indexer.encoders import open_encoder
from indexer.errors import FormatVersionError, IndexerError, NotAnIndexError
from indexer.layout import GenerationLayout, IndexLayout, inside
from indexer.manifest import Manifest, RetrieverRecord, file_digest, load_checks
from indexer.opening import OpenIndex
from indexer.publication import current_generation, leftovers, lock_state

_REBUILD = "index again: twindex index COLLECTION INDEX (what is whole is not encoded again)"
_BLOCK = 65_536
_T = TypeVar("_T")
#: How far a stored vector's length may be from 1: what 16-bit floats lose. Coarser codes are not looked at.
_NORM_TOLERANCE = 2e-3


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, what was found, and what to do."""

    where: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check looked at and what is wrong.

    Attributes
    ----------
    generation
        The generation that was checked, "" where none could be.
    facts
        What was counted, by name.
    faults
        Empty where the index is whole.
    notes
        What is not wrong but worth knowing: a writer at work, leftovers of a killed one.
    """

    generation: str
    facts: Mapping[str, int]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "whole": self.is_whole,
            "generation": self.generation,
            "facts": dict(self.facts),
            "faults": [{"where": f.where, "found": f.found, "remedy": f.remedy} for f in self.faults],
            "notes": list(self.notes),
        }


def check_index(root: Path) -> Report:
    """Read everything an index folder holds and compare it with what was written.

    Raises
    ------
    NotAnIndexError
        If there is no folder, or nothing in it that an index would leave.
    """
    layout = IndexLayout(root)
    notes = tuple(_notes(layout))
    try:
        generation = current_generation(layout)
    except NotAnIndexError as error:
        if not layout.current.exists() or root.is_file():
            raise
        return Report("", {}, (Fault(layout.current.name, str(error), _REBUILD),), notes)
    faults: list[Fault] = []
    facts: dict[str, int] = {}
    try:
        manifest = _read(faults, lambda: Manifest.load(generation.manifest), generation.manifest.name)
        checks = _read(faults, lambda: load_checks(generation.checks), generation.checks.name)
    except FormatVersionError as error:
        # Nothing of another format can be compared with what this one writes.
        return Report(generation.root.name, {}, (Fault(generation.manifest.name, str(error), _REBUILD),), notes)
    if checks is not None:
        faults += _file_faults(generation, checks)
    if checks is not None and manifest is not None:
        damaged = {fault.where for fault in faults}
        faults += _store_faults(OpenIndex(root, generation, manifest), damaged, facts)
    faults += _kept_faults(layout)
    return Report(generation.root.name, facts, tuple(faults), notes)


def _read(faults: list[Fault], read: Callable[[], _T], where: str) -> _T | None:
    try:
        return read()
    except FormatVersionError:
        raise
    except (IndexerError, OSError) as error:
        faults.append(Fault(where, str(error), _REBUILD))
        return None


def _notes(layout: IndexLayout) -> Iterator[str]:
    state = lock_state(layout)
    if state.held:
        yield f"process {state.holder} is writing this index now; readers go on with the live generation"
    elif state.holder:
        yield f"process {state.holder} ended while it was writing; the next `twindex index` clears up after it"
    for path in leftovers(layout):
        yield f"{path.name} is a leftover of a writer that was killed; the next `twindex index` removes it"


def _file_faults(generation: GenerationLayout, checks: Mapping[str, Any]) -> Iterator[Fault]:
    """Compare every file with its size and checksum."""
    files = checks.get("files")
    if not isinstance(files, Mapping):
        yield Fault(generation.checks.name, "it lists no files", _REBUILD)
        return
    for name, written in files.items():
        try:
            path = inside(generation.root, name)
            if not path.exists():
                yield Fault(name, "is missing", _REBUILD)
            elif path.stat().st_size != written["bytes"]:
                found = f"has {path.stat().st_size:,} bytes, was written with {written['bytes']:,}"
                yield Fault(name, found, _REBUILD)
            elif file_digest(path) != written["sha256"]:
                yield Fault(name, "has another content than was written (SHA-256 differs)", _REBUILD)
        except (IndexerError, OSError, KeyError, TypeError) as error:
            yield Fault(name, f"cannot be read ({error})", _REBUILD)
    known = {*files, generation.checks.name}
    for path in sorted(generation.root.rglob("*")):
        name = path.relative_to(generation.root).as_posix()
        if path.is_symlink():
            yield Fault(name, "is a symbolic link, which an index never holds", _REBUILD)
        elif path.is_file() and name not in known:
            yield Fault(name, "was not written by this build", f"remove it, or {_REBUILD}")


def _store_faults(index: OpenIndex, damaged: set[str], facts: dict[str, int]) -> Iterator[Fault]:
    """Compare the stores with each other; those whose files are damaged already are left out."""
    manifest, generation = index.manifest, index.generation
    documents = generation.documents.name
    if documents not in damaged:
        try:
            found = index.documents
            facts |= {"documents": found.documents, "passages": found.passages, "texts": found.texts}
            expected = (manifest.documents, manifest.passages, manifest.texts)
            if (found.documents, found.passages, found.texts) != expected:
                yield Fault(documents, f"counts {tuple(facts.values())}, the manifest says {expected}", _REBUILD)
            yield from (Fault(documents, problem, _REBUILD) for problem in found.problems())
        except IndexerError as error:
            yield Fault(documents, str(error), _REBUILD)
    for record in manifest.retrievers:
        part = record.name if record.has_vectors else generation.lexical.name
        if record.family == "hybrid" or any(name == part or name.startswith(f"{part}/") for name in damaged):
            continue
        try:
            if record.has_vectors:
                yield from _vector_faults(index, record, facts)
            else:
                facts[record.name] = index.lexical(record.name).size
        except IndexerError as error:
            yield Fault(part, str(error), _REBUILD)


def _vector_faults(index: OpenIndex, record: RetrieverRecord, facts: dict[str, int]) -> Iterator[Fault]:
    """Look at every vector of a retriever; opening compares fingerprints, dimension and count."""
    parts = index.vectors(record.name)
    store, where = parts.store, f"{record.name}/vectors.faiss"
    facts[record.name] = store.size
    if not store.gives_back:
        return
    not_finite = not_unit = 0
    for start in range(0, store.size, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, store.size), dtype=np.int64)
        vectors = store.reconstruct(rows)
        finite = np.isfinite(vectors).all(axis=1)
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
        known = np.array([row not in parts.unknown for row in rows.tolist()])
        not_finite += int((~finite).sum())
        not_unit += int((finite & known & (np.abs(lengths - 1.0) > _NORM_TOLERANCE)).sum())
    if not_finite:
        yield Fault(where, f"{not_finite} vectors hold NaN or infinity", _REBUILD)
    if not_unit and store.keeps_lengths:
        yield Fault(where, f"{not_unit} vectors are not of length 1", _REBUILD)


def _kept_faults(layout: IndexLayout) -> Iterator[Fault]:
    """Look at the encoders and encoded texts kept for the next build."""
    remedy = "nothing needs doing: the next `twindex index` makes it again"
    for folder in sorted(layout.workshop.glob("*")):
        name = folder.relative_to(layout.root).as_posix()
        if (folder / "made.json").exists():
            try:
                open_encoder(folder / "encoder")
            except IndexerError as error:
                yield Fault(f"{name}/encoder", str(error), remedy)
        for block in sorted(folder.glob("*/block-*.npz")):
            if not EncodedTexts.is_readable(block):
                yield Fault(block.relative_to(layout.root).as_posix(), "cannot be read", remedy)
