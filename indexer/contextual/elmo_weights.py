"""The published files of an ELMo model (Peters et al. 2018): `options.json` and HDF5 weights, checked.

HDF5 can link to other files of the machine and declare arrays far larger than itself; both are refused here
before anything is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.errors import ModelError, ModelNotFoundError

#: Character ids: the 256 bytes, begin and end of sentence, begin and end of word, padding.
CHARACTERS = 261

_LARGEST = 1 << 17
_MOST_VALUES = 1 << 30
#: Largest options.json that is read, in bytes; the published ones have about 500.
_OPTIONS_BYTES = 1 << 20

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class ElmoOptions:
    """The sizes and switches of an ELMo model.

    Attributes
    ----------
    characters_per_token
        Character positions of a token, the marks of its begin and end included.
    character_dimension
        Dimensions of a character's vector.
    filters
        (width, count) of each convolution.
    activation
        `relu` or `tanh`, after the convolutions.
    highways
        Number of highway layers.
    cell_dimension
        Cells h of one LSTM direction.
    projection_dimension
        Dimensions p of a token vector and of each direction's output.
    layers
        Number L of LSTM layers.
    skip_connections
        Whether the second and later layers add their input to their output.
    cell_clip, projection_clip
        Largest size of a cell's state and of an output; 0 where they are not clipped.
    """

    characters_per_token: int
    character_dimension: int
    filters: tuple[tuple[int, int], ...]
    activation: str
    highways: int
    cell_dimension: int
    projection_dimension: int
    layers: int
    skip_connections: bool
    cell_clip: float
    projection_clip: float

    @property
    def filter_count(self) -> int:
        """Filters of all widths together."""
        return sum(count for _, count in self.filters)

    @property
    def projects_filters(self) -> bool:
        """Whether a matrix leads from the filters to the token vector (they may have one size)."""
        return self.filter_count != self.projection_dimension

    @property
    def projects_cells(self) -> bool:
        """Whether a matrix leads from the cells to the output."""
        return self.projection_dimension < self.cell_dimension

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array that the weights must hold, by name."""
        filters, p, h = self.filter_count, self.projection_dimension, self.cell_dimension
        shapes: dict[str, tuple[int, ...]] = {"char_embed": (CHARACTERS, self.character_dimension)}
        for number, (width, count) in enumerate(self.filters):
            shapes[f"CNN/W_cnn_{number}"] = (1, width, self.character_dimension, count)
            shapes[f"CNN/b_cnn_{number}"] = (count,)
        for number in range(self.highways):
            for gate in ("carry", "transform"):
                shapes[f"CNN_high_{number}/W_{gate}"] = (filters, filters)
                shapes[f"CNN_high_{number}/b_{gate}"] = (filters,)
        if self.projects_filters:
            shapes["CNN_proj/W_proj"], shapes["CNN_proj/b_proj"] = (filters, p), (p,)
        for direction in range(2):
            for layer in range(self.layers):
                cell = cell_name(direction, layer)
                shapes[f"{cell}/W_0"], shapes[f"{cell}/B"] = (2 * p, 4 * h), (4 * h,)
                if self.projects_cells:
                    shapes[f"{cell}/W_P_0"] = (h, p)
        return shapes


def cell_name(direction: int, layer: int) -> str:
    """Return where the weights hold the LSTM of a direction (0 forward, 1 backward) and layer (from 0)."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def find_elmo(model: str) -> tuple[Path, Path]:
    """Return the options and the weights of a model, given its folder or its weights file.

    Raises
    ------
    ModelNotFoundError
        If there are none.
    ModelError
        If there are several.
    """
    place = Path(model)
    if not model or not place.exists():
        message = f"no ELMo model at {model!r}; give a folder with *options.json and *weights.hdf5"
        raise ModelNotFoundError(message)
    folder = place if place.is_dir() else place.parent
    weights = sorted([*folder.glob("*weights.hdf5"), *folder.glob("*weights.h5")]) if place.is_dir() else [place]
    options = sorted(folder.glob("*options.json"))
    for kind, found in (("*options.json", options), ("*weights.hdf5", weights)):
        if not found:
            message = f"{folder} holds no {kind}; an ELMo model is a folder with *options.json and *weights.hdf5"
            raise ModelNotFoundError(message)
        if len(found) > 1:
            names = ", ".join(path.name for path in found[:3])
            message = f"{folder} holds {len(found)} files {kind} ({names}); keep one model in a folder"
            raise ModelError(message)
    return options[0], weights[0]


def read_options(path: Path) -> ElmoOptions:
    """Read an `options.json`.

    Raises
    ------
    ModelError
        If it is no JSON, lacks a setting, or has one of the wrong kind.
    """
    try:
        if path.stat().st_size > _OPTIONS_BYTES:
            message = f"{path} has {path.stat().st_size:,} bytes, too many for the options of an ELMo model"
            raise ModelError(message)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        message = f"{path} cannot be read as JSON ({error}); expected the options of an ELMo model"
        raise ModelError(message) from error
    return options_of(content, path)


def options_of(content: object, path: Path) -> ElmoOptions:
    """Turn the published options, as JSON gave them, into `ElmoOptions`.

    Raises
    ------
    ModelError
        If a setting is missing or of the wrong kind; the message begins with the path.
    """
    settings = _Settings(path, content)
    cnn, lstm = settings.section("char_cnn"), settings.section("lstm")
    activation = cnn.content.get("activation", "relu")
    if activation not in {"relu", "tanh"}:
        message = f"{path}: char_cnn.activation is {activation!r}, expected relu or tanh"
        raise ModelError(message)
    options = ElmoOptions(
        characters_per_token=cnn.whole("max_characters_per_token", least=3),
        character_dimension=cnn.section("embedding").whole("dim"),
        filters=cnn.filters(),
        activation=str(activation),
        highways=cnn.whole("n_highway", least=0, default=0),
        cell_dimension=lstm.whole("dim"),
        projection_dimension=lstm.whole("projection_dim"),
        layers=lstm.whole("n_layers"),
        skip_connections=bool(lstm.content.get("use_skip_connections", False)),
        cell_clip=lstm.number("cell_clip"),
        projection_clip=lstm.number("proj_clip"),
    )
    if options.highways > 64 or options.layers > 64:
        message = f"{path} asks for {options.highways} highways and {options.layers} layers, at most 64 each"
        raise ModelError(message)
    if options.projection_dimension > options.cell_dimension:
        message = (
            f"{path}: lstm.projection_dim {options.projection_dimension} is larger than"
            f" lstm.dim {options.cell_dimension}"
        )
        raise ModelError(message)
    if max(width for width, _ in options.filters) > options.characters_per_token:
        message = f"{path}: a filter is wider than the {options.characters_per_token} characters of a token"
        raise ModelError(message)
    return options


@dataclass(frozen=True, slots=True)
class _Settings:
    """One JSON object of the options, and where it stands."""

    path: Path
    content: Any
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.content, dict):
            where = self.name or "the file"
            message = f"{self.path}: {where} is no JSON object; expected the options of an ELMo model"
            raise ModelError(message)

    def section(self, key: str) -> "_Settings":
        return _Settings(self.path, self.content.get(key), self._full(key))

    def whole(self, key: str, *, least: int = 1, default: int | None = None) -> int:
        value = self.content.get(key, default)
        if not _is_whole(value, least):
            expected = f"a whole number from {least} to {_LARGEST}"
            message = f"{self.path}: {self._full(key)} is {value!r}, expected {expected}"
            raise ModelError(message)
        return int(value)

    def number(self, key: str) -> float:
        value = self.content.get(key) or 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            message = f"{self.path}: {self._full(key)} is {value!r}, expected a number of 0 or more"
            raise ModelError(message)
        return float(value)

    def filters(self) -> tuple[tuple[int, int], ...]:
        value = self.content.get("filters")
        if not isinstance(value, list) or not value or len(value) > 64 or not all(map(_is_filter, value)):
            message = f"{self.path}: {self._full('filters')} is no list of [width, count] pairs"
            raise ModelError(message)
        return tuple((int(width), int(count)) for width, count in value)

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST


def _is_filter(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_whole(number, 1) for number in value)


def read_weights(path: Path, options: ElmoOptions) -> dict[str, NDArray[np.float32]]:
    """Read the arrays that the options call for.

    Raises
    ------
    ModelError
        If the file is no HDF5, or an array is missing, of another shape, kept elsewhere, or not finite.
    """
    import h5py

    shapes = options.shapes()
    if sum(int(np.prod(shape, dtype=np.float64)) for shape in shapes.values()) > _MOST_VALUES:
        message = f"the options beside {path} call for more than {_MOST_VALUES:,} weights; no ELMo has as many"
        raise ModelError(message)
    try:
        with h5py.File(path, "r") as file:
            return {name: _read_array(file, name, shape, path) for name, shape in shapes.items()}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"{path} cannot be read as HDF5 ({reason}); expected the weights of an ELMo model"
        raise ModelError(message) from error


def _read_array(file: Any, name: str, shape: tuple[int, ...], path: Path) -> NDArray[np.float32]:
    import h5py

    node = file
    for part in name.split("/"):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            message = f"{path} holds no array {name}; expected one of shape {shape}"
            raise ModelError(message)
        if not isinstance(link, h5py.HardLink):
            message = f"{path}: {name} is a link to somewhere else, which is not followed"
            raise ModelError(message)
        node = node[part]
    if not isinstance(node, h5py.Dataset) or node.shape != shape or node.dtype.kind != "f":
        found = f"shape {node.shape} of {node.dtype}" if isinstance(node, h5py.Dataset) else "no array"
        message = f"{path}: {name} has {found}, the options call for {shape} of floating-point numbers"
        raise ModelError(message)
    if node.external or node.is_virtual:
        message = f"{path}: {name} keeps its numbers in another file, which is not read"
        raise ModelError(message)
    values: NDArray[np.float32] = np.ascontiguousarray(node[()], dtype=np.float32)
    if not np.isfinite(values).all():
        message = f"{path}: {name} holds a value that is no finite number"
        raise ModelError(message)
    return values
