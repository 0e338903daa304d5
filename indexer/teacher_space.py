"""The space that word vectors are fitted in."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening
from indexer.whitening_spec import WhiteningMode, WhiteningSpec
from indexer.workshop import Made, Workshop


@dataclass(frozen=True, slots=True)
class TeacherSpace:
    """The space that word vectors are fitted in: the contextual vectors, whitened or only centred."""

    made: Made
    workshop: Workshop
    whitening: Whitening

    @classmethod
    def fit(cls, made: Made, rows: NDArray[np.int64], workshop: Workshop, asked: WhiteningSpec) -> "TeacherSpace":
        """Fit the whitening on the given rows, which are encoded if they have not been."""
        # Without whitening the space is centred all the same: shrinkage 1 moves the origin and nothing else.
        spec = WhiteningSpec.parse("1.0") if asked.mode is WhiteningMode.NONE else asked
        general = workshop.general_space(made) if spec.mode is WhiteningMode.AUTO else None
        blocks = list(workshop.encoded_blocks(made, rows)) or [np.zeros((0, made.encoder.dimension), np.float32)]
        return cls(made, workshop, Whitening.fit(iter(blocks), spec, general=general))

    def project(self, vectors: Vectors) -> Vectors:
        """Take contextual (n, d) vectors into the space, of unit length."""
        return normalize(self.whitening.transform(vectors))

    def teacher(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the (r, d) teacher vectors of the given rows."""
        parts = [self.project(block) for block in self.workshop.encoded_blocks(self.made, rows)]
        return np.concatenate(parts) if parts else np.zeros((0, self.whitening.dimension), np.float32)

    def blocks(self) -> Iterator[Vectors]:
        """Yield the teacher vectors of all texts."""
        for block in self.workshop.encoded_blocks(self.made):
            yield self.project(block)
