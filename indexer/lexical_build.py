"""The lexical index is built in a process of its own, while this one encodes.

Run as `python -m indexer.lexical_build DOCUMENTS FOLDER`, it indexes a document store and prints what that cost.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpora.progress import Progress
from indexer.cost import Cost, peak_memory_bytes
from indexer.errors import IndexerError
from indexer.layout import GenerationLayout
from indexer.prior import Prior
from indexer.stores import lexical
from indexer.stores.documents import DocumentStore


@dataclass(frozen=True, slots=True)
class LexicalBuild:
    """A lexical index being built."""

    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, generation: GenerationLayout, prior: Prior | None = None) -> "LexicalBuild":
        """Start building the lexical index of a staged generation, from the one before where that is whole."""
        parts = () if prior is None else (prior.generation.lexical, prior.generation.documents)
        before = [str(part) for part in parts if prior is not None and prior.is_whole(part.name)]
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
                *(before if len(before) == 2 else ()),
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


def index_documents(store: DocumentStore, folder: Path, before: Path | None, documents_before: Path | None) -> int:
    """Index a document store into a folder, from the index before where little has changed; return how many are new."""
    if before is not None and documents_before is not None:
        try:
            return _update(store, folder, before, documents_before)
        except IndexerError:
            # What is vouched for and cannot be read was written by another version.
            shutil.rmtree(folder)
            folder.mkdir()
    return lexical.build(store.iter_searchable(), folder)


def _update(store: DocumentStore, folder: Path, before: Path, documents_before: Path) -> int:
    carried = store.carried_from(documents_before)
    known = lexical.LexicalStore.open(before)
    held = known.numbers
    known.searcher.close()
    numbers = carried if held is None else np.where(held < 0, -1, carried[held])
    new = np.setdiff1d(np.arange(store.documents), numbers)
    if not lexical.can_update(before, numbers, len(new)):
        return lexical.build(store.iter_searchable(), folder)
    earlier = DocumentStore(documents_before)
    gone = (text for _, text in earlier.searchable_texts(np.flatnonzero(carried < 0).tolist()))
    lexical.update(before, folder, numbers, removed=gone, added=store.searchable_texts(new.tolist()))
    earlier.close()
    return len(new)


def main(documents: str, folder: str, before: str = "", documents_before: str = "") -> None:
    """Index a document store into a folder and print the cost as JSON."""
    _die_with_parent()
    started = time.perf_counter()
    store = DocumentStore(Path(documents))
    texts = index_documents(
        store,
        Path(folder),
        Path(before) if before else None,
        Path(documents_before) if documents_before else None,
    )
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
