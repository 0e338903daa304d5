"""The lexical index is built in a process of its own, while this one encodes.

Run as `python -m indexer.lexical_build DOCUMENTS FOLDER`, it indexes a document store and prints what that cost.
"""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from corpora.progress import Progress
from indexer.cost import Cost, peak_memory_bytes
from indexer.errors import IndexerError
from indexer.layout import GenerationLayout
from indexer.stores import lexical
from indexer.stores.documents import DocumentStore


@dataclass(frozen=True, slots=True)
class LexicalBuild:
    """A lexical index being built."""

    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, generation: GenerationLayout) -> "LexicalBuild":
        """Start building the lexical index of a staged generation."""
        generation.lexical.mkdir()
        root = str(Path(__file__).resolve().parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
        }
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "indexer.lexical_build",
                str(generation.documents),
                str(generation.lexical),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        return cls(process)

    def finish(self, progress: Progress, documents: int) -> Cost:
        """Wait for the index and return what it cost.

        Raises
        ------
        IndexerError
            If the process failed.
        """
        progress.start("indexing words (BM25)", None, "documents")
        output = self._output()
        progress.advance(documents)
        progress.finish()
        lines = output.strip().splitlines()
        if self.process.returncode or not lines:
            reason = lines[-1] if lines else f"exit status {self.process.returncode}"
            message = f"building the lexical index failed: {reason}"
            raise IndexerError(message)
        return Cost(**json.loads(lines[-1]))

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self._output()

    def _output(self) -> str:
        """Return all that the process prints; its standard input stays open till then, or it would leave."""
        process = self.process
        if process.stdin is None or process.stdout is None or process.stdout.closed:
            return ""
        output = process.stdout.read()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        return output


def _die_with_parent() -> None:
    """Leave when the other end of standard input closes: the parent has gone, however it went."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(documents: str, folder: str) -> None:
    """Index a document store into a folder and print the cost as JSON."""
    _die_with_parent()
    started = time.perf_counter()
    store = DocumentStore(Path(documents))
    texts = lexical.build(store.iter_searchable(), Path(folder))
    store.close()
    times = os.times()
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    cost = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": times.user + times.system,
        "texts": texts,
        "bytes": size,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    sys.stdout.write(json.dumps(cost) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
