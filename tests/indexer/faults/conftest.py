"""Indexes to be damaged."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from corpora.document import Document


@pytest.fixture(scope="module")
def build_once(tmp_path_factory: pytest.TempPathFactory, make_index: Callable[..., Path]) -> Callable[..., Path]:
    """Build an index that the tests of a module copy."""

    def make(documents: object, **options: object) -> Path:
        return make_index(documents, root=tmp_path_factory.mktemp("pristine") / "index", **options)

    return make


@pytest.fixture
def copy_index(tmp_path: Path) -> Callable[[Path], Path]:
    """Copy an index; each copy is a folder of its own, without a shared file."""
    numbers = itertools.count()

    def copy(source: Path) -> Path:
        return Path(shutil.copytree(source, tmp_path / f"copy{next(numbers)}"))

    return copy


class Builder:
    """Runs builds in processes that can be killed; see `builder.py`."""

    def __init__(self, static: str) -> None:
        self.static = static
        root = Path(__file__).resolve().parents[3]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("builder.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root)},
        )

    def run(self, root: Path, documents: Sequence[Document], *, lexical: bool = False, **how: float) -> str:
        """Build an index; return `done`, `killed`, or the error."""
        job = {
            "root": str(root),
            "documents": [(document.doc_id, document.text) for document in documents],
            "retrievers": f"bm25,{self.static}" if lexical else self.static,
            **how,
        }
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture(scope="module")
def builder(tiny_vectors: Path) -> Iterator[Builder]:
    """Something that builds indexes and can be killed."""
    if not hasattr(os, "fork"):
        pytest.skip("killing builds needs os.fork")
    found = Builder(f"static:vectors={tiny_vectors}")
    yield found
    found.close()
