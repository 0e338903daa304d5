"""Reading NumPy files."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer.arrays import UNREADABLE_ARRAYS, read_array, read_arrays


def test_arrays_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "rows.npy", rows)
    np.savez(tmp_path / "both.npz", rows=rows, names=np.array(["river", "bank"]))
    np.testing.assert_array_equal(read_array(tmp_path / "rows.npy"), rows)
    np.testing.assert_array_equal(read_array(tmp_path / "rows.npy", mapped=True), rows)
    held = read_arrays(tmp_path / "both.npz")
    np.testing.assert_array_equal(held["rows"], rows)
    assert held["names"].tolist() == ["river", "bank"]


def test_a_mapped_array_is_not_read_and_not_writable(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros(3))
    found = read_array(tmp_path / "rows.npy", mapped=True)
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable


@pytest.mark.parametrize("read", [read_array, read_arrays])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((", b"\x80\x04}."])
def test_a_damaged_file_raises_what_callers_expect(read: Callable[[Path], Any], content: bytes, tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(UNREADABLE_ARRAYS):
        read(tmp_path / "damaged")


def test_one_thread_reads_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "rows.npy", np.zeros(3))
    np.savez(tmp_path / "both.npz", rows=np.zeros(3))
    reading = threading.Semaphore(1)
    load = np.load

    def alone(*arguments: Any, **named: Any) -> Any:
        assert reading.acquire(blocking=False)
        time.sleep(0.002)
        reading.release()
        return load(*arguments, **named)

    monkeypatch.setattr(np, "load", alone)
    with ThreadPoolExecutor(4) as pool:
        for read, name in ((read_array, "rows.npy"), (read_arrays, "both.npz")):
            assert len(list(pool.map(read, [tmp_path / name] * 12))) == 12
