"""Damages an index at random, and queries it with random text, for a fixed time: `make fuzz`.

Allowed are an answer and an error of ours. Anything else (another exception, a crash of the process, no end in
20 seconds) is printed with the seed that brings it back, and makes the exit status 1. Half of the damage is vouched
for with fresh checksums, so that it reaches the code that reads each kind of file.

FAISS trusts what it reads: of the files that it reads itself, damage is left as checksums catch it.
"""

import argparse
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from corpora.collection import Collection
from corpora.document import Document
from corpora.errors import CorpusError
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.errors import IndexerError
from indexer.layout import GenerationLayout
from indexer.manifest import file_digests, load_checks, save_checks
from indexer.spec import parse_retrievers
from search.asking import ask
from search.errors import SearchError
from search.retrieval.searcher import Searcher

TEXTS = ["river bank money", "the loan of a boat", "", "water " * 300, "Straße l'eau 机器学习", "a\x00b"]
TABLE = "river 1 0 0 0\nwater 0.8 0.2 0 0\nbank 0.5 0 0.5 0\nmoney 0 0 1 0\nloan 0 0 0.8 0.2\nboat 0.9 0.1 0 0\n"
ALPHABET = [*"ab *?\"'()[]:^~+-&|!\\/\x00\t\n\ud800é机🤷TO", "river", "bank", "AND", "NOT"]


def build(folder: Path) -> Path:
    """Build the index that is damaged."""
    (folder / "table.txt").write_text(TABLE)
    documents = [Document(f"d{number}", text, metadata={"n": number}) for number, text in enumerate(TEXTS * 4)]
    collection = Collection("fuzz", "fuzz", lambda _log: iter(documents))
    notation = f"bm25,static:vectors={folder / 'table.txt'},white=static:vectors={folder / 'table.txt'},whitening=0.5"
    build_index(collection, folder / "index", BuildSettings(tuple(parse_retrievers(notation))), progress=Silent())
    return folder / "index"


def damage(root: Path, rng: np.random.Generator) -> None:
    """Change up to three files of an index."""
    generation = GenerationLayout(next(root.glob("generation-*")))
    files = sorted(path for path in generation.root.rglob("*") if path.is_file())
    vouched = rng.random() < 0.5
    for path in rng.choice(np.array(files, dtype=object), int(rng.integers(1, 4)), replace=False):
        if vouched and path.suffix == ".faiss":
            continue
        content = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 9))):
            at = int(rng.integers(0, len(content) + 1))
            match int(rng.integers(4)):
                case 0:
                    content[at : at + 1] = rng.bytes(1)
                case 1:
                    del content[at:]
                case 2:
                    content[at:at] = rng.bytes(int(rng.integers(1, 40)))
                case _:
                    content[at : at + 8] = rng.choice([b"\x00" * 8, b"\xff" * 8, b"\x7f" * 8, b"99999999"])
        path.write_bytes(bytes(content))
    if vouched:
        try:
            checks = load_checks(generation.checks)
            save_checks(generation.checks, {**checks, "files": file_digests(generation)})
        except IndexerError:
            return


def query_text(rng: np.random.Generator) -> str:
    """Return a query that nobody would write."""
    return "".join(rng.choice(np.array(ALPHABET, dtype=object), int(rng.integers(0, 60))))


def attempt(pristine: Path, folder: Path, seed: int) -> None:
    """Damage a copy and query it; the untouched index is asked as well."""
    rng = np.random.default_rng(seed)
    root = folder / "copy"
    shutil.copytree(pristine, root)
    damage(root, rng)
    text = query_text(rng)
    for place in (root, pristine):
        try:
            searcher = Searcher.open(place)
            selection = searcher.select([f"n={rng.integers(9)}"]) if rng.random() < 0.3 else None
            ask(searcher, text, k=int(rng.integers(1, 50)), selection=selection)
        except (IndexerError, SearchError, CorpusError):
            if place is pristine:
                raise


def outcome_of(work: Callable[[], None]) -> str:
    """Do something in a process of its own; return "" where it ended well, or what happened."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(20)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            work()
        except BaseException as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            os.write(writer, f"{type(error).__name__} at {where}: {error}"[:300].encode("utf-8", "replace"))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else said


def main() -> int:
    """Fuzz for a time, or try one seed again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    parser.add_argument("--seed", type=int, help="try this one alone")
    options = parser.parse_args()
    found = attempts = 0
    with tempfile.TemporaryDirectory() as name:
        pristine = build(Path(name))
        seeds = iter([options.seed]) if options.seed is not None else itertools.count(options.first)
        end = time.monotonic() + options.seconds
        for seed in seeds:
            if time.monotonic() > end:
                break
            folder = Path(name) / f"try{seed}"
            attempts += 1
            problem = outcome_of(lambda: attempt(pristine, folder, seed))  # noqa: B023
            shutil.rmtree(folder, ignore_errors=True)
            if problem:
                found += 1
                print(f"seed {seed}: {problem}", flush=True)  # noqa: T201
    print(f"{attempts} attempts, {found} problems")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
