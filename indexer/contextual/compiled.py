"""The run-time of compiled encoders: numpy, openvino and tokenizers, no torch."""

import hashlib
import json
import shutil
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.contextual.answering import SingleTexts
from indexer.contextual.batching import batches, padded
from indexer.contextual.runtime import Precision, compile_model
from indexer.contextual.space import Space
from indexer.contextual.tokenization import PieceOffsets, PieceTokenizer
from indexer.encoder import Counted, Role
from indexer.errors import DamagedIndexError, PortabilityError, other_format
from indexer.layout import inside
from indexer.vectors import Vectors, normalize

KIND = "compiled"
FORMAT = 1
DESCRIPTION = "encoder.json"
MODEL_FILES = ("model.xml", "model.bin", "tokenizer.json")

#: Up to so many texts are answered one after another on one core, more are spread over the cores.
_FEW = 4
#: Texts tokenised at once while earlier ones are being encoded.
_BLOCK = 4096
_BATCH_PIECES = 2048
_BATCH_TEXTS = 128


@dataclass(frozen=True, slots=True)
class Description:
    """What `encoder.json` holds beside kind and fingerprint."""

    space: Space
    precision: Precision
    dimension: int
    pad_id: int
    calibration: str
    files: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Hex digest of the space, the precision and, for int8, what it was calibrated on."""
        return self.space.fingerprint(self.precision, self.calibration)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that `from_json` reads."""
        return {
            "kind": KIND,
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "precision": self.precision.value,
            "dimension": self.dimension,
            "pad_id": self.pad_id,
            "calibration": self.calibration,
            "space": asdict(self.space),
            "files": dict(self.files),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Description":
        """Read what `to_json` gave; KeyError, TypeError or ValueError where it is something else."""
        return cls(
            space=Space(**record["space"]),
            precision=Precision(record["precision"]),
            dimension=int(record["dimension"]),
            pad_id=int(record["pad_id"]),
            calibration=str(record["calibration"]),
            files={name: str(record["files"][name]) for name in MODEL_FILES},
        )


class CompiledEncoder:
    """Encodes with an OpenVINO model; one object may be used by several threads.

    Attributes
    ----------
    description
        What the encoder is.
    folder
        Where its files lie.
    pieces
        Its tokenizer.
    """

    def __init__(self, description: Description, folder: Path, pieces: PieceTokenizer) -> None:
        """Take a verified folder; `load` makes one. The model itself is compiled when first needed."""
        self.description = description
        self.folder = folder
        self.pieces = pieces
        self._compiled: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._single = SingleTexts(
            folder / "model.xml",
            description.precision,
            pad_id=description.pad_id,
            longest=description.space.max_length,
        )

    @property
    def dimension(self) -> int:
        """Dimensions d of the vectors."""
        return self.description.dimension

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides the vectors."""
        return self.description.fingerprint

    @property
    def max_tokens(self) -> int:
        """Pieces of a passage that are read beside the special pieces and the document prompt's."""
        return int(self.pieces.budget)

    def piece_offsets(self, texts: Sequence[str]) -> list[PieceOffsets]:
        """Return the (t, 2) character offsets of each text's pieces, uncut and without special pieces."""
        return self.pieces.piece_offsets(texts)

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length in the order of the texts.

        A text without any piece is a row of zeros. A text longer than the window is read as far as
        the window reaches; `truncated` counts such texts.
        """
        return self.encode_counted(texts, role=role).vectors

    def encode_counted(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Counted:
        """Return what `encode` returns, and the pieces read of each text, special ones and prompts included."""
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        read = np.zeros(len(texts), np.int32)
        prompt = self.description.space.prompt(role)
        if len(texts) <= _FEW:
            for row, ids in enumerate(self.pieces.ids([prompt + text for text in texts])):
                out[row] = self._single.encode(ids)
                read[row] = len(ids)
        else:
            self._encode_bulk([prompt + text for text in texts] if prompt else texts, out, read)
        out[[row for row, text in enumerate(texts) if not text.strip()]] = 0.0
        return Counted(normalize(out), read)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many pieces of the texts the model reads, special ones and prompts included."""
        prompt = self.description.space.document_prompt
        return sum(len(each) for each in self.pieces.ids([prompt + text for text in texts]))

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than what the model reads of them."""
        return int(np.sum(self.pieces.lengths(texts) > self.max_tokens))

    def save(self, folder: Path) -> None:
        """Copy the encoder's files into another folder."""
        if folder.resolve() == self.folder.resolve():
            return
        for name in (*MODEL_FILES, DESCRIPTION):
            shutil.copyfile(self.folder / name, folder / name)

    @property
    def loading_seconds(self) -> float:
        """What loading the model for single texts has taken so far."""
        return self._single.loading_seconds

    def hold(self) -> None:
        """Take hold of the files that encoding single texts needs, which may be removed later."""
        self._single.hold()

    def _encode_bulk(self, texts: Sequence[str], out: Vectors, read: NDArray[np.int32]) -> None:
        """Fill the rows of `out`, with a batch on each core and one more that waits; `read` gets the lengths.

        Requests are waited for in the order in which they were started, and have no Python callback:
        with one (as AsyncInferQueue has) a worker thread of OpenVINO may want the interpreter's lock
        while the model's destructor holds it and waits for that thread.
        """
        model = self._model("THROUGHPUT")
        idle = [model.create_infer_request() for _ in range(_streams(model) + 1)]
        running: deque[tuple[Any, list[int]]] = deque()
        try:
            for rows, array, mask in self._batches(texts):
                request = idle.pop() if idle else _finish(*running.popleft(), out)
                request.start_async([array, mask])
                running.append((request, rows))
                read[rows] = mask.sum(axis=1)
        finally:
            while running:
                _finish(*running.popleft(), out)

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield rows, ids and mask of each batch; the next block is tokenised meanwhile."""
        starts = range(0, len(texts), _BLOCK)
        with ThreadPoolExecutor(1, "tokenising") as tokenising:
            waiting = tokenising.submit(self.pieces.ids, texts[:_BLOCK])
            for start in starts:
                ids = waiting.result()
                following = start + _BLOCK
                if following < len(texts):
                    waiting = tokenising.submit(self.pieces.ids, texts[following : following + _BLOCK])
                lengths = [len(each) for each in ids]
                for rows in batches(lengths, most_pieces=_BATCH_PIECES, most_texts=_BATCH_TEXTS):
                    array, mask = padded([ids[row] for row in rows], self.description.pad_id)
                    yield [start + row for row in rows], array, mask

    def _model(self, mode: str) -> Any:
        with self._lock:
            if mode not in self._compiled:
                self._compiled[mode] = compile_model(self.folder / "model.xml", self.description.precision, mode)
            return self._compiled[mode]


def load(folder: Path) -> CompiledEncoder:
    """Open an encoder folder, every file of it hashed.

    Raises
    ------
    DamagedIndexError
        If a file is missing or altered.
    FormatVersionError
        If it was written by another version of this format.
    PortabilityError
        If the fingerprint is not that of what the folder describes.
    """
    record, description = _describe(folder / DESCRIPTION)
    for name, expected in description.files.items():
        _verify(inside(folder, name), expected)
    if record.get("fingerprint") != description.fingerprint:
        message = f"{folder / DESCRIPTION} describes another space than its fingerprint says; index again"
        raise PortabilityError(message)
    space = description.space
    pieces = PieceTokenizer.open(folder / "tokenizer.json", space.max_length, space.document_prompt)
    return CompiledEncoder(description, folder, pieces)


def _describe(path: Path) -> tuple[Mapping[str, Any], Description]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        written = record["format"]
        description = Description.from_json(record) if written == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} does not describe a compiled encoder ({error!r}); index again"
        raise DamagedIndexError(message) from error
    if description is None:
        raise other_format(str(path), written, FORMAT)
    return record, description


def _finish(request: Any, rows: list[int], out: Vectors) -> Any:
    """Wait for a request, take its rows, and return it for the next batch."""
    request.wait()
    out[rows] = request.get_output_tensor(0).data
    return request


def _streams(model: Any) -> int:
    return max(1, int(model.get_property("NUM_STREAMS")))


def _verify(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        message = f"{path} is missing or unreadable; index again"
        raise DamagedIndexError(message) from error
    if found != expected:
        message = f"{path} was altered (SHA-256 {found[:12]}, expected {expected[:12]}); index again"
        raise DamagedIndexError(message)
