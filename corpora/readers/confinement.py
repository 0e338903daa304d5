"""Parsing in another process: a page or a PDF may loop, crash or eat memory there, and only there.

HTML and PDF parsers take hours over some kilobytes made for it. So they run in a child process that has a
deadline for each file, a bound on its memory (where the system has such bounds), and no right to write
files, connect anywhere or start processes. It serves one file after another and is started anew after it
was stopped.
"""

import atexit
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from corpora.errors import UnreadableFileError

#: A slow disk may take this long to import the parsers.
_START_SECONDS = 60.0

_WORKER = Path(__file__).with_name("parsing_worker.py")


class Confinement:
    """The child process; begins with the first request, ends with `close`."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._memory_bytes = 0
        self._lock = threading.Lock()

    def parse(self, request: dict[str, Any], *, seconds: float, memory_bytes: int, where: str) -> dict[str, Any]:
        """Return the worker's answer to one request.

        Raises
        ------
        UnreadableFileError
            If it does not answer within `seconds`, needs more than `memory_bytes`, crashes, or says that the
            file cannot be parsed.
        """
        with self._lock:
            if self._memory_bytes != memory_bytes:
                self._stop()
            process = self._running(memory_bytes, where)
            line = self._exchange(process, json.dumps(request).encode() + b"\n", seconds, where)
        answer = json.loads(line)
        if "error" in answer:
            message = f"{where}: {answer['error']}"
            raise UnreadableFileError(message)
        return dict(answer)

    def close(self) -> None:
        """Stop the child process; the next request starts another."""
        with self._lock:
            self._stop()

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, seconds: float, where: str) -> bytes:
        if process.stdin is None:  # pragma: no cover - it is a pipe
            message = "the parsing process has no input"
            raise RuntimeError(message)
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            self._stop()
            message = f"{where}: takes longer than {seconds:g} seconds to parse"
            raise UnreadableFileError(message) from None
        except OSError:
            answer = b""
        except BaseException:
            # Ctrl-C in the middle: the answer that is under way must not be taken for the next file's.
            self._stop()
            raise
        if not answer:
            self._stop()
            message = f"{where}: its parser crashed or ran out of memory"
            raise UnreadableFileError(message)
        return answer

    def _running(self, memory_bytes: int, where: str) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        self._memory_bytes = memory_bytes
        self._answers = queue.Queue()
        # -P: the folder of the worker must not shadow modules; -B: it may not write bytecode either.
        command = [sys.executable, "-P", "-B", str(_WORKER), str(memory_bytes)]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        threading.Thread(target=_pass_on, args=(self._process, self._answers), daemon=True).start()
        # Importing the parsers counts against no file: the process says when it is ready.
        try:
            ready = self._answers.get(timeout=_START_SECONDS)
        except queue.Empty:
            ready = b""
        if not ready:
            self._stop()
            message = (
                f"{where}: the process that parses HTML and PDF does not start within {memory_bytes:,} bytes "
                "of memory; install pypdf and selectolax again, or raise the limit"
            )
            raise UnreadableFileError(message)
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue


def _pass_on(process: subprocess.Popen[bytes], answers: "queue.Queue[bytes]") -> None:
    """Move answers from the pipe to the queue, where waiting can have a deadline; empty at the end."""
    try:
        while line := process.stdout.readline() if process.stdout is not None else b"":
            answers.put(line)
    except (OSError, ValueError):
        pass
    answers.put(b"")


#: The process that all readers share.
CONFINEMENT = Confinement()
atexit.register(CONFINEMENT.close)
