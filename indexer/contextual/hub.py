"""Models by their id on the hub: from its cache, or fetched once, files of data only."""

import os
import re
from pathlib import Path

from indexer.errors import ModelNotFoundError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_CONNECT_SECONDS = 3.0
#: What is fetched from the hub: no code, and no pickles unless they are trusted.
_HUB_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_PICKLES = ("pytorch_model*.bin",)


def hub_folder(model: str, trust_pickle: bool) -> Path:
    """Return the folder of a model in the hub's cache, fetched if it is not there.

    Raises
    ------
    ModelNotFoundError
        If the name is no id, or the hub cannot be reached: at once, without retries.
    """
    if not _HUB_ID.fullmatch(model):
        message = f"{model} is neither a folder nor the id of a model on the hub"
        raise ModelNotFoundError(message)
    import huggingface_hub

    patterns = [*_HUB_FILES, *(_PICKLES if trust_pickle else ())]
    try:
        return Path(huggingface_hub.snapshot_download(model, local_files_only=True, allow_patterns=patterns))
    except Exception:  # noqa: S110 - any failure only means that it is not in the cache
        pass
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        message = f"{model} is no folder and not in the hub's cache, and HF_HUB_OFFLINE forbids fetching it"
        raise ModelNotFoundError(message)
    if not _reachable(os.environ.get("HF_ENDPOINT", "https://huggingface.co")):
        message = f"{model} is no folder and not in the hub's cache, and the hub cannot be reached; give a folder"
        raise ModelNotFoundError(message)
    try:
        return Path(huggingface_hub.snapshot_download(model, allow_patterns=patterns, etag_timeout=5))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"{model} is no folder, and the hub did not give it ({reason})"
        raise ModelNotFoundError(message) from error


def _reachable(endpoint: str) -> bool:
    """Return whether the hub, or the proxy that leads to it, takes a connection within seconds."""
    import socket
    import urllib.request
    from urllib.parse import urlsplit

    proxy = urllib.request.getproxies().get(urlsplit(endpoint).scheme)
    address = urlsplit(proxy or endpoint)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False
