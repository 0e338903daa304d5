"""How an index comes to be, or changes, at one instant: a lock, a generation built aside, and `CURRENT` last."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer.errors import IndexBusyError, NotAnIndexError
from indexer.layout import GenerationLayout, IndexLayout, write_text

_PART = ".part"


@contextmanager
def writing(layout: IndexLayout) -> Iterator[None]:
    """Hold the index's lock; a lock whose process is gone is taken over.

    Raises
    ------
    IndexBusyError
        If a living process is writing this index.
    """
    layout.root.mkdir(parents=True, exist_ok=True)
    mine = {"pid": os.getpid(), "host": socket.gethostname(), "started": _started(os.getpid())}
    while True:
        try:
            handle = os.open(layout.lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            holder = _holder(layout.lock)
            if holder is not None:
                message = f"process {holder} is writing {layout.root}; wait for it to end, or stop it and run again"
                raise IndexBusyError(message) from None
            layout.lock.unlink(missing_ok=True)
            continue
        with os.fdopen(handle, "w") as file:
            json.dump(mine, file)
        break
    try:
        yield
    finally:
        layout.lock.unlink(missing_ok=True)


def _holder(lock: Path) -> int | None:
    """Return the id of the living process that holds the lock, None where it is stale."""
    try:
        held = json.loads(lock.read_text())
        pid, host, started = int(held["pid"]), str(held["host"]), held["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host != socket.gethostname():
        return pid
    return pid if started is not None and _started(pid) == started else None


def _started(pid: int) -> float | None:
    """Return when a process started, None where there is no such process."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def current_generation(layout: IndexLayout) -> GenerationLayout:
    """Return the live generation.

    Raises
    ------
    NotAnIndexError
        If the folder is absent, unreadable, empty, no index, or an index whose first build never ended.
    """
    root = layout.root
    expected = "expected a folder written by: twindex index COLLECTION INDEX"
    if not root.exists():
        message = f"there is no index at {root}; {expected}"
        raise NotAnIndexError(message)
    if not root.is_dir():
        message = f"{root} is a file, not an index; {expected}"
        raise NotAnIndexError(message)
    try:
        names = {path.name for path in root.iterdir()}
        name = layout.current.read_text(encoding="utf-8").strip() if "CURRENT" in names else ""
    except PermissionError as error:
        message = f"{root} cannot be read: permission denied; change its permissions or run as its owner"
        raise NotAnIndexError(message) from error
    if not names:
        message = f"{root} is an empty folder, not an index; {expected}"
        raise NotAnIndexError(message)
    if not name:
        unfinished = any(entry.endswith(_PART) for entry in names) or "encoded" in names
        what = "holds a build that never ended" if unfinished else "is not a twindex index"
        message = (
            f"{root} {what}; {expected}" if not unfinished else f"{root} {what}; run: twindex index again to resume"
        )
        raise NotAnIndexError(message)
    generation = layout.generation(name)
    if Path(name).name != name or not generation.root.is_dir():
        message = f"{layout.current} names {name!r}, which is no generation of this index; run: twindex check {root}"
        raise NotAnIndexError(message)
    return generation


@contextmanager
def new_generation(layout: IndexLayout) -> Iterator[GenerationLayout]:
    """Give a new generation to fill, and publish it when the block ends without an error.

    The generation before is kept for readers that still use it; older ones are removed.
    """
    names = sorted(path.name for path in layout.root.glob("generation-*") if path.is_dir())
    numbers = [int(name.removeprefix("generation-").removesuffix(_PART)) for name in names]
    name = f"generation-{max(numbers, default=0) + 1:06d}"
    for leftover in layout.root.glob(f"generation-*{_PART}"):
        shutil.rmtree(leftover, ignore_errors=True)
    aside = layout.root / f"{name}{_PART}"
    aside.mkdir()
    try:
        yield GenerationLayout(aside)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    previous = layout.current.read_text(encoding="utf-8").strip() if layout.current.exists() else ""
    sync_tree(aside)
    aside.rename(layout.root / name)
    sync_folder(layout.root)
    write_text(layout.current, name + "\n")
    sync_folder(layout.root)
    for old in layout.root.glob("generation-*"):
        if old.name not in {name, previous}:
            shutil.rmtree(old, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Make every file below a folder durable."""
    for path in folder.rglob("*"):
        if path.is_file():
            # Opened for writing: some systems refuse to flush a file opened for reading.
            with path.open("rb+") as handle:
                os.fsync(handle.fileno())
        else:
            sync_folder(path)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
