"""How an index comes to be, or changes, at one instant: a lock, a generation built aside, and `CURRENT` last."""

import errno
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import IndexBusyError, NotAnIndexError
from indexer.layout import GenerationLayout, IndexLayout, write_text

_PART = ".part"
_PREFIX = "generation-"
_NAME = re.compile(r"generation-\d{6,}")
_LOCKED_BYTE = 1 << 20  # beyond what the file says, which stays readable for others on Windows


@contextmanager
def writing(layout: IndexLayout) -> Iterator[str]:
    """Hold the index's lock, and give the line that tells of a writer that died holding it ("" mostly).

    The lock is the system's own on the file LOCK, which ends with the process however that ends: nothing has to be
    taken over, and two can never hold it. What the file says is for people: the process, while it writes. A file that
    says something while nobody holds the lock was left by a process that was killed.

    Raises
    ------
    IndexBusyError
        If a living process is writing this index.
    """
    layout.root.mkdir(parents=True, exist_ok=True)
    handle = os.open(layout.lock, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if not _lock(handle):
            message = f"process {_said(handle)} is writing {layout.root}; wait for it to end, or stop it and run again"
            raise IndexBusyError(message)
        before = _said(handle)
        stale = (
            f"process {before} ended while it was writing this index; nothing of the index is lost" if before else ""
        )
        _say(handle, f"{os.getpid()} on {socket.gethostname()}")
        try:
            yield stale
        finally:
            _say(handle, "")
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class LockState:
    """Whether somebody is writing an index, and what LOCK says: who is, or who was when it was killed."""

    held: bool
    holder: str


def lock_state(layout: IndexLayout) -> LockState:
    """Return the state of an index's lock; the lock is left as it is."""
    try:
        # Reading is enough to try a lock here, and all that a read-only disk allows.
        handle = os.open(layout.lock, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except OSError:
        return LockState(held=False, holder="")
    try:
        # Closing the file gives the lock back.
        return LockState(not _lock(handle), _said(handle))
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Take the system's lock on an open file, and return whether it could be had."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            return False
        raise
    return True


def _said(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 1000).decode("utf-8", "replace").strip()


def _say(handle: int, text: str) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    os.truncate(handle, 0)
    os.write(handle, text.encode())


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
        name = layout.current.read_bytes().decode("utf-8", "replace").strip() if "CURRENT" in names else ""
    except PermissionError as error:
        message = f"{root} cannot be read: permission denied; change its permissions or run as its owner"
        raise NotAnIndexError(message) from error
    if not names:
        message = f"{root} is an empty folder, not an index; {expected}"
        raise NotAnIndexError(message)
    if "CURRENT" in names and not _NAME.fullmatch(name):
        message = f"{layout.current} is damaged: it names {name[:80]!r}, no generation of an index; index again"
        raise NotAnIndexError(message)
    if not name:
        unfinished = any(entry.endswith(_PART) for entry in names) or "encoded" in names
        what = "holds a build that never ended" if unfinished else "is not a twindex index"
        message = (
            f"{root} {what}; {expected}" if not unfinished else f"{root} {what}; run: twindex index again to resume"
        )
        raise NotAnIndexError(message)
    generation = layout.generation(name)
    if not _NAME.fullmatch(name) or not generation.root.is_dir():
        message = (
            f"{layout.current} names {name[:80]!r}, which is no generation of this index; run: twindex check {root}"
        )
        raise NotAnIndexError(message)
    return generation


@contextmanager
def new_generation(layout: IndexLayout) -> Iterator[GenerationLayout]:
    """Give a new generation to fill, and publish it when the block ends without an error.

    The generation before is kept for readers that still use it; older ones are removed.
    """
    clear_leftovers(layout)
    numbers = [int(path.name.removeprefix(_PREFIX)) for path in layout.root.iterdir() if _NAME.fullmatch(path.name)]
    name = f"{_PREFIX}{max(numbers, default=0) + 1:06d}"
    # A name of its own: a child of a killed writer may live a moment longer, and must not write into this one.
    aside = layout.root / f"{name}-{secrets.token_hex(4)}{_PART}"
    aside.mkdir()
    try:
        yield GenerationLayout(aside)
        previous = _live_name(layout)
        sync_tree(aside)
        aside.rename(layout.root / name)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync_folder(layout.root)
    write_text(layout.current, name + "\n")
    sync_folder(layout.root)
    for old in layout.root.iterdir():
        if _NAME.fullmatch(old.name) and old.name not in {name, previous}:
            shutil.rmtree(old, ignore_errors=True)


def clear_leftovers(layout: IndexLayout) -> None:
    """Remove what a killed writer left: generations that were never finished, or finished and never published."""
    live = _live_name(layout)
    for path in leftovers(layout):
        # Without a live generation a finished one is the most that anybody could have: it stays.
        if live or path.name.endswith(_PART):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def leftovers(layout: IndexLayout) -> list[Path]:
    """Return what a killed writer left behind: parts, and generations newer than the live one."""
    live = _live_name(layout)
    found = []
    for path in layout.root.iterdir():
        part = path.name.endswith(_PART) and path.name.startswith((_PREFIX, layout.current.name))
        if part or (_NAME.fullmatch(path.name) and path.name > live):
            found.append(path)
    return sorted(found)


def _live_name(layout: IndexLayout) -> str:
    """Return the name of the live generation, "" where there is none."""
    try:
        name = layout.current.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
    return name if _NAME.fullmatch(name) and (layout.root / name).is_dir() else ""


def sync_tree(folder: Path) -> None:
    """Make every file below a folder durable."""
    for path in folder.rglob("*"):
        if path.is_file():
            # Windows flushes only what is open for writing; elsewhere a file may be a link to a read-only one.
            handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
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
