"""What decides the vectors of a transformer, torch or compiled."""

import hashlib
import json
from dataclasses import dataclass

from indexer.encoder import Role


@dataclass(frozen=True, slots=True)
class Space:
    """All that decides a transformer's vectors, with every choice made: what its fingerprint is of.

    `layer` None is the model's own output through all its modules; `pooling` is then the model's own.
    """

    model: str
    weights_sha256: str
    settings_sha256: str
    layer: int | None
    pooling: str
    query_prompt: str
    document_prompt: str
    max_length: int

    def fingerprint(self, precision: str, calibration: str = "") -> str:
        """Return the hex digest of the space at a precision; the model's name and place do not matter."""
        decided = [
            self.weights_sha256,
            self.settings_sha256,
            self.layer,
            self.pooling,
            self.query_prompt,
            self.document_prompt,
            self.max_length,
            precision,
            calibration,
        ]
        return hashlib.sha256(json.dumps(decided).encode()).hexdigest()

    def prompt(self, role: Role) -> str:
        """Return what is put before a text of this role."""
        return self.query_prompt if role is Role.QUERY else self.document_prompt
