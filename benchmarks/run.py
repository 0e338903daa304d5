"""All benchmarks, one after another: `benchmarks/results.json`, and the table in `docs/performance.md`.

Collections are looked for where TWINDEX_SHARED points (default ../shared); without them the built-in `lee` serves.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- results -->", "<!-- end of results -->"


def main(only: list[str]) -> None:
    """Run the benchmarks whose names are given, all without names, and write what they say."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() and only else {"results": {}}
    found["machine"] = machine()
    for name in BENCHMARKS:
        if only and name not in only:
            continue
        print(f"{name} ...", flush=True)
        started = time.perf_counter()
        found["results"].update(apart(name))
        print(f"  {time.perf_counter() - started:.0f} s", flush=True)
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    write_page(found)
    print(table(found))


#: Name -> module and function, and the collections it is given.
BENCHMARKS: Mapping[str, tuple[str, str, tuple[str, ...]]] = MappingProxyType(
    {
        "contextual": ("benchmarks.contextual", "compare", ("scifact",)),
        "static": ("benchmarks.static", "compare", ()),
        "querying": ("benchmarks.querying", "compare", ("cranfield",)),
        "indexing": ("benchmarks.indexing", "compare", ("scifact",)),
        "lexical": ("benchmarks.lexical", "compare", ("cranfield",)),
        "reading": ("benchmarks.reading", "measure", ()),
        "fitting": ("benchmarks.fitting", "measure", ()),
        "fitted_speed": ("benchmarks.fitting", "speed", ()),
        "memory": ("benchmarks.memory", "measure", ()),
        "limits": ("benchmarks.limits", "measure", ("scifact",)),
    }
)


def apart(name: str) -> dict[str, Any]:
    """Run one benchmark in a process of its own: what a process has held counts as its children's peak memory, too."""
    command = [sys.executable, "-m", "benchmarks.run", "--rows-of", name]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    rows: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return rows


def run(name: str) -> dict[str, Any]:
    """Run one benchmark: rows by name."""
    module, function, collections = BENCHMARKS[name]
    rows: dict[str, Any] = getattr(import_module(module), function)(*map(_folder, collections))
    return rows


def _folder(name: str) -> str:
    folder = (ROOT / os.environ.get("TWINDEX_SHARED", "../shared") / "data" / "ir" / name).resolve()
    return str(folder) if folder.is_dir() else "lee"


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    from importlib.metadata import version

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    packages = ("openvino", "torch", "sentence-transformers", "faiss-cpu", "numpy", "model2vec", "txtai", "bm25s")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in packages},
    }


def table(found: dict[str, Any]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| | ours | peer | unit | ratio |", "|---|---|---|---|---|"]
    for name, row in sorted(found["results"].items()):
        peer = f"{row['peer']:,.4g}" if "peer" in row else "-"
        ratio = f"{row['ratio']:.2f}x" if "ratio" in row else "-"
        lines.append(f"| {name} | {row['ours']:,.4g} | {peer} | {row['unit']} | {ratio} |")
    return "\n".join(lines)


def write_page(found: dict[str, Any]) -> None:
    """Put the table and the machine between the marks of the performance page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    where = found["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in where["packages"].items())
    machine_line = (
        f"{where['processor']}, {where['cores']} cores, {where['system']}, Python {where['python']}; {packages}."
    )
    PAGE.write_text(f"{before}{_BEGIN}\n{machine_line}\n\n{table(found)}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rows-of"]:
        print(json.dumps(run(sys.argv[2])))
    else:
        main(sys.argv[1:])
