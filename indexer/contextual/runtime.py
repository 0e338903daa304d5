"""OpenVINO on this machine: precisions, cores, and the compile cache in the user's cache folder."""

import contextlib
import os
import sys
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from indexer.contextual.telemetry import forbid_telemetry
from indexer.errors import DamagedIndexError

#: Of compiled models that are kept for the next time: 24 MB each for MiniLM in int8, one a length.
_CACHED_BYTES = 1 << 30


class Precision(StrEnum):
    """Arithmetic of a compiled encoder."""

    INT8 = "int8"
    BF16 = "bf16"
    FP32 = "fp32"


#: What OpenVINO is told to compute in, where the machine can; otherwise fp32. Without a hint it takes bf16
#: wherever there is bf16. An int8 model's linear layers are int8 in any case; the hint is for the rest of it.
PRECISION_HINTS: Mapping[Precision, str] = MappingProxyType(
    {Precision.INT8: "bf16", Precision.BF16: "bf16", Precision.FP32: "f32"}
)


#: A query's forward pass reads all weights to use each a dozen times: two cores read them faster than one, and of more
#: each would have little to do between waiting for the others.
_CORES_OF_ONE_TEXT = 2

#: What turns models of other libraries into OpenVINO's; queries do not need it, and it takes half as long to import as
#: all the rest. `openvino` does without it where it cannot be imported.
_CONVERTER = "openvino.tools.ovc"


def run_time() -> Any:
    """Return the openvino package without its converter."""
    forbid_telemetry()
    if "openvino" in sys.modules:
        return sys.modules["openvino"]
    sys.modules[_CONVERTER] = None  # type: ignore[assignment]
    try:
        import openvino
    finally:
        del sys.modules[_CONVERTER]
    return openvino


def read_model(path: Path) -> Any:
    """Return an OpenVINO model that goes on working when its files are removed.

    Raises
    ------
    DamagedIndexError
        If the file is no such model.
    """
    try:
        return run_time().Core().read_model(str(path))
    except RuntimeError as error:
        message = f"{path} holds no model ({str(error).splitlines()[0]}); index again"
        raise DamagedIndexError(message) from error


def fixed_length(model: Any, length: int) -> Any:
    """Return a copy of a model for one text of exactly so many pieces."""
    fixed = model.clone()
    fixed.reshape({port: run_time().PartialShape([1, length]) for port in fixed.inputs})
    return fixed


def compile_model(model: Any, precision: Precision, mode: str) -> Any:
    """Compile an OpenVINO model for this machine, through the compile cache in the user's cache folder.

    Parameters
    ----------
    model
        The model's XML file, or a model that has been read.
    precision
        What its arithmetic was made for.
    mode
        LATENCY: one text at a time, on two cores where there are two; THROUGHPUT: one text a core, many at a time.
    """
    cores = available_cores()
    core = run_time().Core()
    hint = PRECISION_HINTS[precision]
    settings: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": hint if hint.upper() in _capabilities(core) else "f32",
        "PERFORMANCE_HINT": mode,
        "NUM_STREAMS": 1 if mode == "LATENCY" else cores,
        "INFERENCE_NUM_THREADS": min(cores, _CORES_OF_ONE_TEXT) if mode == "LATENCY" else cores,
        # A thread bound to its core waits for whatever else runs there, and the other one of the text waits for it.
        "ENABLE_CPU_PINNING": mode != "LATENCY",
    }
    cache = cache_folder()
    if cache is not None:
        settings["CACHE_DIR"] = str(cache / "openvino")
    try:
        compiled = core.compile_model(str(model) if isinstance(model, Path) else model, "CPU", settings)
    except RuntimeError as error:
        name = model if isinstance(model, Path) else model.get_friendly_name()
        message = f"{name} cannot be compiled for this machine ({str(error).splitlines()[0]}); index again"
        raise DamagedIndexError(message) from error
    if cache is not None:
        prune(cache / "openvino")
    return compiled


def prune(folder: Path, most_bytes: int = _CACHED_BYTES) -> None:
    """Remove the compiled models that were longest unused."""
    used: list[tuple[float, int, Path]] = []
    for path in folder.glob("*.blob"):
        with contextlib.suppress(OSError):
            state = path.stat()
            used.append((max(state.st_atime, state.st_mtime), state.st_size, path))
    kept = 0
    for _, size, path in sorted(used, reverse=True):
        kept += size
        if kept > most_bytes:
            with contextlib.suppress(OSError):
                path.unlink()


def cache_folder() -> Path | None:
    """Return the folder for what can be computed again, made where missing; None where none can be written.

    `TWINDEX_CACHE` names it; otherwise it lies where the platform keeps such things.
    """
    chosen = os.environ.get("TWINDEX_CACHE")
    if chosen:
        folder = Path(chosen)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "twindex" / "Cache"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches" / "twindex"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twindex"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def available_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def _capabilities(core: Any) -> Collection[str]:
    return set(core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
