"""Every file name of an index folder, in one place."""

import json
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from indexer.errors import DamagedIndexError

FORMAT_VERSION = 1
KIND = "twindex-index"


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The folder that `twindex index` writes."""

    root: Path

    @property
    def current(self) -> Path:
        """The file that names the live generation."""
        return self.root / "CURRENT"

    @property
    def lock(self) -> Path:
        """Held by the process that is writing."""
        return self.root / "LOCK"

    @property
    def workshop(self) -> Path:
        """What a build keeps between runs: compiled encoders and encoded blocks, by encoder."""
        return self.root / "encoded"

    def generation(self, name: str) -> "GenerationLayout":
        """Return the layout of one generation."""
        return GenerationLayout(self.root / name)


@dataclass(frozen=True, slots=True)
class GenerationLayout:
    """One complete, never changed state of an index."""

    root: Path

    @property
    def manifest(self) -> Path:
        """Inputs and fingerprints."""
        return self.root / "manifest.json"

    @property
    def checks(self) -> Path:
        """Sizes, checksums, counts and findings of the build."""
        return self.root / "checks.json"

    @property
    def cost(self) -> Path:
        """What building took."""
        return self.root / "cost.json"

    @property
    def documents(self) -> Path:
        """The SQLite database of documents and passages."""
        return self.root / "documents.sqlite"

    @property
    def judgements(self) -> Path:
        """Queries and qrels of the collection."""
        return self.root / "judgements"

    @property
    def lexical(self) -> Path:
        """The Whoosh index."""
        return self.root / "lexical"

    def retriever(self, name: str) -> "RetrieverLayout":
        """Return the layout of one vector retriever."""
        return RetrieverLayout(self.root / name)


@dataclass(frozen=True, slots=True)
class RetrieverLayout:
    """What one vector retriever keeps."""

    root: Path

    @property
    def vectors(self) -> Path:
        """The FAISS index."""
        return self.root / "vectors.faiss"

    @property
    def unknown(self) -> Path:
        """The rows of texts of which the encoder knows nothing, where there are any."""
        return self.root / "unknown.npy"

    @property
    def whitening(self) -> Path:
        """The whitening, where there is one."""
        return self.root / "whitening.npz"

    @property
    def encoder(self) -> Path:
        """What encoding queries needs."""
        return self.root / "encoder"


def inside(folder: Path, name: object) -> Path:
    """Return the path of a file that an index names, which must lie in its folder.

    Raises
    ------
    DamagedIndexError
        If the name leads out of the folder, or to something that is no plain file.
    """
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    path = folder.joinpath(*parts)
    leaves = not parts or ".." in parts or any(len(PureWindowsPath(part).parts) != 1 for part in parts)
    if leaves or PurePosixPath(str(name)).is_absolute() or (path.exists() and not path.is_file()):
        message = f"{folder} names {str(name)[:80]!r}, which is no file in it; index again"
        raise DamagedIndexError(message)
    return path


def write_json(path: Path, value: Any) -> None:
    """Write JSON durably: aside, fsync, replace; keys sorted so that equal values give equal bytes."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write a text file durably: aside, fsync, replace."""
    aside = path.with_name(path.name + ".part")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
