"""Single texts through a compiled model: padded to a fixed length, on one core, in buffers made once."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.contextual.runtime import Precision, compile_model, fixed_length, read_model, run_time

#: Pieces that a single text is padded up to, each with a model compiled for exactly that length when a text of it first
#: comes. A length that changes from query to query costs a model for all lengths a millisecond of new preparations, and
#: padding costs what its pieces cost: a forward pass takes nearly as long as it has pieces.
LENGTHS = (8, 12, 16, 20, 24, 32, 48, 64)


class SingleTexts:
    """Encodes one text at a time; what a length needs is compiled when a text of it first comes.

    Attributes
    ----------
    loading_seconds
        What reading and compiling models has taken so far.
    """

    def __init__(self, path: Path, precision: Precision, *, pad_id: int, longest: int) -> None:
        """Take a model's XML file; it is read by `hold`, or with the first text.

        Parameters
        ----------
        path, precision
            The model.
        pad_id
            The piece that texts are padded with.
        longest
            Most pieces that the model reads.
        """
        self.loading_seconds = 0.0
        self._path = path
        self._precision = precision
        self._pad_id = pad_id
        self._longest = longest
        self._lock = threading.Lock()
        self._source: Any = None
        self._fixed: dict[int, _FixedLength] = {}
        self._any_length: Any = None

    def hold(self) -> None:
        """Take hold of the model's file, which may be removed later."""
        with self._lock:
            self._read()

    def encode(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the (d,) output for a text of the given pieces."""
        length = next((each for each in LENGTHS if len(ids) <= each <= self._longest), None)
        with self._lock:
            if length is None:
                return self._encode_long(ids)
            if length not in self._fixed:
                started = time.perf_counter()
                model = compile_model(fixed_length(self._read(), length), self._precision, "LATENCY")
                self._fixed[length] = _FixedLength(model, length, self._pad_id)
                self.loading_seconds += time.perf_counter() - started
            return self._fixed[length].encode(ids)

    def _encode_long(self, ids: Sequence[int]) -> NDArray[np.float32]:
        if self._any_length is None:
            started = time.perf_counter()
            self._any_length = compile_model(self._read(), self._precision, "LATENCY").create_infer_request()
            self.loading_seconds += time.perf_counter() - started
        array = np.array([ids], dtype=np.int64)
        self._any_length.infer([array, np.ones_like(array)], share_inputs=True)
        return np.array(self._any_length.get_output_tensor(0).data[0], dtype=np.float32)

    def _read(self) -> Any:
        if self._source is None:
            started = time.perf_counter()
            self._source = read_model(self._path)
            self.loading_seconds += time.perf_counter() - started
        return self._source


class _FixedLength:
    """A model for one text of exactly so many pieces, its inputs in place."""

    def __init__(self, model: Any, length: int, pad_id: int) -> None:
        self._pad_id = pad_id
        self._ids = np.full((1, length), pad_id, dtype=np.int64)
        self._mask = np.ones((1, length), dtype=np.int64)
        self._request = model.create_infer_request()
        for place, array in enumerate((self._ids, self._mask)):
            self._request.set_input_tensor(place, run_time().Tensor(array, shared_memory=True))
        # The first run prepares what later ones use.
        self._request.infer()

    def encode(self, ids: Sequence[int]) -> NDArray[np.float32]:
        count = len(ids)
        self._ids[0, :count] = ids
        self._ids[0, count:] = self._pad_id
        self._mask[0, :count] = 1
        self._mask[0, count:] = 0
        self._request.infer()
        return np.array(self._request.get_output_tensor(0).data[0], dtype=np.float32)
