"""What several tests share."""

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real collections that tests may use where it is present."""
    root = Path(__file__).resolve().parents[1]
    folder = (root / os.environ.get("TWINDEX_SHARED", "../shared") / "data").resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared test data at {folder}; set TWINDEX_SHARED to run this test")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
