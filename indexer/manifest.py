"""What an index was built from (`manifest.json`: inputs only) and what the build found (`checks.json`)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from indexer.errors import DamagedIndexError, other_format
from indexer.layout import FORMAT_VERSION, KIND, GenerationLayout, inside, write_json
from indexer.spec import Family, RetrieverSpec, check_name


@dataclass(frozen=True, slots=True)
class RetrieverRecord:
    """One retriever of an index: its notation and the fingerprints of what makes its vectors."""

    name: str
    family: Family
    options: Mapping[str, str]
    encoder: str = ""
    whitening: str = ""
    factory: str = ""
    dimension: int = 0
    model: str = ""

    @property
    def spec(self) -> RetrieverSpec:
        """The retriever as it was asked for."""
        return RetrieverSpec(self.name, self.family, dict(self.options))

    @property
    def has_vectors(self) -> bool:
        """Whether the retriever keeps a vector store."""
        return self.family not in {Family.BM25, Family.HYBRID}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Inputs of an index. The same input gives the same bytes: no time, no path, no machine is in it."""

    collection: str
    fingerprint: str
    documents: int
    passages: int
    texts: int
    window: Mapping[str, int | bool]
    retrievers: tuple[RetrieverRecord, ...]
    exclude_same_id: bool = False
    source_models: Mapping[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION
    kind: str = KIND

    def retriever(self, name: str) -> RetrieverRecord | None:
        """Return a retriever's record by name, None where there is none."""
        return next((record for record in self.retrievers if record.name == name), None)

    def members(self, name: str) -> tuple[str, ...]:
        """Return the retrievers that a hybrid of that name fuses; none for any other."""
        record = self.retriever(name)
        return record.spec.members if record is not None and record.family is Family.HYBRID else ()

    def save(self, path: Path) -> None:
        """Write the manifest."""
        write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Manifest":
        """Read a manifest.

        Raises
        ------
        DamagedIndexError
            If it is missing or is no manifest.
        FormatVersionError
            If another format version wrote it.
        """
        found = load_json(path)
        version = found.get("format_version")
        if found.get("kind") != KIND:
            message = f"{path.name} is not a twindex manifest; index the collection again"
            raise DamagedIndexError(message)
        if version != FORMAT_VERSION:
            raise other_format("this index", version, FORMAT_VERSION)
        try:
            records = tuple(
                RetrieverRecord(**{**record, "family": Family(record["family"])}) for record in found.pop("retrievers")
            )
            for record in records:
                # Names serve as folders: one that the notation would refuse is nobody's honest index.
                check_name(record.name)
            return cls(retrievers=records, **found)
        except (KeyError, TypeError, ValueError) as error:
            message = f"{path.name} is damaged ({error}); run: twindex check, then index again"
            raise DamagedIndexError(message) from error


def load_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of an index.

    Raises
    ------
    DamagedIndexError
        If the file is missing or does not hold a JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        state = "is missing" if not path.exists() else "is damaged"
        message = f"{path.name} {state}; run: twindex check, then index again"
        raise DamagedIndexError(message) from error
    if not isinstance(found, dict):
        message = f"{path.name} is damaged: no JSON object; run: twindex check, then index again"
        raise DamagedIndexError(message)
    return found


def save_checks(path: Path, found: Mapping[str, Any]) -> None:
    """Write what a build found, with a digest of it: nothing else vouches for this file."""
    content = {**found, "format_version": FORMAT_VERSION}
    write_json(path, {**content, "digest": _checks_digest(content)})


def load_checks(path: Path) -> dict[str, Any]:
    """Read what a build found.

    Raises
    ------
    DamagedIndexError
        If the file is missing or is not as it was written.
    FormatVersionError
        If another format version wrote it.
    """
    found = load_json(path)
    digest = found.pop("digest", None)
    # Files of format 1 say so or not; before that they carried no digest.
    version = found.get("format_version", 0 if digest is None else FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise other_format(path.name, version, FORMAT_VERSION)
    if digest != _checks_digest(found):
        message = f"{path.name} is damaged; run: twindex check, then index again"
        raise DamagedIndexError(message)
    found.pop("format_version", None)
    return found


def _checks_digest(found: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


#: A file up to this size is compared with its checksum whenever it is opened, a larger one by its size.
_COMPARED = 8 << 20


def verify_files(generation: GenerationLayout, checks: Mapping[str, Any], part: str) -> None:
    """Compare the files of a part of a generation (a path, or a folder's) with what was written.

    Raises
    ------
    DamagedIndexError
        If one is missing, has another size, or (up to 8 MiB) another content.
    """
    files = checks.get("files")
    if not isinstance(files, Mapping):
        message = f"{generation.checks.name} is damaged: it lists no files; run: twindex check, then index again"
        raise DamagedIndexError(message)
    for name, written in files.items():
        if name != part and not name.startswith(f"{part}/"):
            continue
        path = inside(generation.root, name)
        size = path.stat().st_size if path.exists() else None
        if size is None or size != written["bytes"]:
            found = "is missing" if size is None else f"has {size:,} bytes, was written with {written['bytes']:,}"
            message = f"{name} {found}; run: twindex check, then index again"
            raise DamagedIndexError(message)
        if size <= _COMPARED and file_digest(path) != written["sha256"]:
            message = f"{name} is not as it was written; run: twindex check, then index again"
            raise DamagedIndexError(message)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def file_digests(generation: GenerationLayout) -> dict[str, dict[str, int | str]]:
    """Return size and SHA-256 of every file of a generation but `checks.json`, by relative path."""
    digests: dict[str, dict[str, int | str]] = {}
    for path in sorted(generation.root.rglob("*")):
        if path.is_file() and path != generation.checks:
            name = path.relative_to(generation.root).as_posix()
            digests[name] = {"bytes": path.stat().st_size, "sha256": file_digest(path)}
    return digests
