"""Indexes to be damaged."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


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
