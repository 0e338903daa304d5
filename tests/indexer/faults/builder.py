"""Builds indexes in processes that die when they are told to.

Reads one job a line as JSON from standard input, forks a process for it, and answers with how that ended. Forking
from a process that has imported everything and done nothing makes a job cost what building costs.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.spec import parse_retrievers

#: What changes a folder, as Python's audit events name it.
_EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "shutil.rmtree"}


def _die_at(number: int, root: str) -> None:
    """Kill this process, as with kill -9, just before the numbered change below a folder."""
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in _EVENTS or not any(str(argument).startswith(root) for argument in arguments[:2]):
            return
        if event == "open" and isinstance(arguments[2], int) and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _kill_children(seconds: float) -> None:
    """Kill what this process has started by then, as the system does when memory runs out; it lives on itself."""
    time.sleep(seconds)
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                os.kill(int(child), signal.SIGKILL)


def _build(job: dict[str, Any]) -> str:
    held = [Document(doc_id, text) for doc_id, text in job["documents"]]
    collection = Collection("tiny", "test", lambda _log: iter(held))
    settings = BuildSettings(tuple(parse_retrievers(job["retrievers"])))
    if job.get("die_at"):
        _die_at(job["die_at"], job["root"])
    if job.get("die_after"):
        signal.setitimer(signal.ITIMER_REAL, job["die_after"])  # unheeded, the alarm ends a process at once
    if job.get("children_die_after"):
        threading.Thread(target=_kill_children, args=(job["children_die_after"],), daemon=True).start()
    if job.get("interrupt_after"):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, job["interrupt_after"])
    try:
        build_index(collection, Path(job["root"]), settings, progress=Silent())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def _kill_group(leader: int, seconds: float) -> None:
    """Kill a build and all it has started, at one instant; the leader is not waited for before its pipe closes."""
    time.sleep(seconds)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _run(job: dict[str, Any]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        if job.get("group_dies_after"):
            os.setsid()
        os.write(writer, _build(job).encode())
        os._exit(0)
    os.close(writer)
    if job.get("group_dies_after"):
        threading.Thread(target=_kill_group, args=(child, job["group_dies_after"]), daemon=True).start()
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return "killed" if os.WIFSIGNALED(status) else answer


def main() -> None:
    """Run jobs until standard input ends."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
