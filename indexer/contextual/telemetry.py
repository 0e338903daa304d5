"""OpenVINO's converter and NNCF report usage over the network unless told not to: here they are told.

Both import `openvino_telemetry` and fall back to a stub of their own where it is missing, so the
import is made to fail for this process. No setting of theirs does this without writing into the
user's home folder.
"""

import sys

_PACKAGE = "openvino_telemetry"


def forbid_telemetry() -> None:
    """Keep openvino and nncf from sending anything; call before importing either.

    Where somebody else imported the telemetry package first, its sender is made to send nothing.
    """
    loaded = sys.modules.get(_PACKAGE)
    if loaded is None:
        sys.modules[_PACKAGE] = None  # type: ignore[assignment]
        return
    sender = sys.modules.get(f"{_PACKAGE}.utils.sender")
    if sender is not None:
        sender.TelemetrySender.send = _send_nothing


def _send_nothing(*_arguments: object, **_options: object) -> None:
    """Stand in for the telemetry sender."""
