"""How strong a whitening a space wants, from general text alone: no queries, no judgements.

General text is encoded twice, as whole texts and as single sentences. That measures the space, not the topic
of the collection (a collection of one topic has a high mean cosine in the best of spaces), and at both of
the lengths at which a space is used: passages are long, questions are short.

Three symptoms. A high mean cosine of general sentences alone can be a mere offset, as e5 models are trained
to have: there centring is enough, and whitening does harm. Raw hidden layers, which whitening rescues, also
tell long texts from short ones by one large direction, and averages of word vectors put much of their
variance into one direction.
docs/whitening.md has the figures that the rule was chosen on, and those it was not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from indexer.errors import ModelError
from indexer.vector_statistics import Float64, VectorStatistics
from indexer.vectors import Vectors, normalize

#: How much of the spectrum is evened out, and which share of the mean goes, in a space without symptoms.
_MILD = 0.1
_SHARE = 0.5

#: Where each symptom begins and where it is full.
_ANISOTROPY = (0.2, 0.4)
_LENGTH_SHIFT = (0.25, 0.5)
_FIRST_SHARE = (0.075, 0.125)
#: The same for a collection's own mean cosine, which has its topic in it.
_OWN_ANISOTROPY = (0.3, 0.5)

_TEXTS = 100
_SENTENCES = 300
_FEWEST = 20
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class GeneralTexts(NamedTuple):
    """Background text in both lengths, to be encoded."""

    passages: list[str]
    sentences: list[str]


def general_texts(background: Sequence[str]) -> GeneralTexts:
    """Return at most 100 whole texts and 300 sentences of at least four words, evenly spread."""
    texts = [text for text in background if text.strip()]
    sentences = [part for text in texts for part in _SENTENCE_END.split(text) if len(part.split()) > 3]
    return GeneralTexts(_spread(texts, _TEXTS), _spread(sentences, _SENTENCES))


def _spread(values: list[str], most: int) -> list[str]:
    if len(values) <= most:
        return values
    return [values[at] for at in np.linspace(0, len(values) - 1, most).astype(int)]


@dataclass(frozen=True, slots=True)
class GeneralSpace:
    """What general text looks like in a space.

    Attributes
    ----------
    anisotropy
        Mean cosine of sentences.
    passage_anisotropy
        Mean cosine of whole texts.
    length_shift
        |mean of texts - mean of sentences|^2 over the variance of sentences (all of unit length).
    first_share
        Share of the sentences' variance in its first direction.
    length_direction
        (d,) float64 unit vector from the mean of whole texts to that of sentences; zeros if they coincide.
    """

    anisotropy: float
    passage_anisotropy: float
    length_shift: float
    first_share: float
    length_direction: Float64

    @classmethod
    def measure(cls, passages: Vectors, sentences: Vectors) -> Self | None:
        """Measure encoded general text; None where the encoder knows fewer than 20 texts or sentences.

        Parameters
        ----------
        passages, sentences
            (n, d) vectors of `GeneralTexts`, of any length; rows of zeros are left out.

        Raises
        ------
        ModelError
            If a value is not a finite number, or the dimensions differ.
        """
        if passages.shape[1] != sentences.shape[1]:
            message = (
                f"texts have {passages.shape[1]} dimensions, sentences {sentences.shape[1]};"
                " encode both with one encoder"
            )
            raise ModelError(message)
        long, short = (VectorStatistics.gather(normalize(part)) for part in (passages, sentences))
        if min(long.count, short.count) < _FEWEST:
            return None
        spectrum = np.linalg.eigvalsh(short.covariance)
        variance = float(spectrum.sum())
        step = short.mean - long.mean
        size = float(step @ step)
        return cls(
            short.mean_cosine,
            long.mean_cosine,
            size / variance if variance > 0.0 else 0.0,
            float(spectrum[-1]) / variance if variance > 0.0 else 0.0,
            step / np.sqrt(size) if size > 0.0 else step,
        )

    @property
    def dimension(self) -> int:
        """Dimensions d."""
        return len(self.length_direction)

    @property
    def strength(self) -> float:
        """How much of the spectrum to even out, 0 to 1.

        0.1 for an isotropic space; for an anisotropic one all where length or one direction is the cause,
        and nothing where neither is.
        """
        anisotropic = _ramp(self.anisotropy, _ANISOTROPY)
        cause = max(_ramp(self.length_shift, _LENGTH_SHIFT), _ramp(self.first_share, _FIRST_SHARE))
        return anisotropic * cause + (1.0 - anisotropic) * _MILD

    @property
    def share(self) -> float:
        """Share a of the mean to take out: 1/2, and 1 where texts of every length have the same offset."""
        same = _ramp(self.anisotropy, _ANISOTROPY) * (1.0 - _ramp(self.length_shift, _LENGTH_SHIFT))
        return _SHARE + (1.0 - _SHARE) * same

    @property
    def tells_length(self) -> bool:
        """Whether length makes a large direction of its own, which whitening then leaves out."""
        return self.length_shift > _LENGTH_SHIFT[0]


class Strength(NamedTuple):
    """What `auto` settles on: shrinkage e, and the share a of the mean that is taken out."""

    shrinkage: float
    share: float


def choose(found: VectorStatistics, general: GeneralSpace | VectorStatistics | None) -> Strength:
    """Return e and a for the n vectors in d dimensions that `found` was gathered from.

    e = 1 - s r, with s the strength that the space wants, and r = 1 - min(1, d / n) how far n vectors can
    tell d directions apart: fewer vectors than dimensions are moved, and not evened out.

    =============================================  =====  ======
    space                                          s      a
    =============================================  =====  ======
    isotropic (sentence-tuned output)              0.1    1/2
    anisotropic: a mere offset                     0      1
    anisotropic: one large direction               1      1
    anisotropic: length makes a large direction    1      1/2
    =============================================  =====  ======

    and linear between. Without a `GeneralSpace` the mean cosine must do, of general texts, or of the
    collection with its topic in it.
    """
    resolved = 1.0 - min(1.0, found.dimension / max(found.count, 1))
    if isinstance(general, GeneralSpace):
        return Strength(1.0 - general.strength * resolved, general.share)
    anisotropic = _ramp((general or found).mean_cosine, _OWN_ANISOTROPY)
    return Strength(1.0 - (anisotropic + (1.0 - anisotropic) * _MILD) * resolved, _SHARE)


def _ramp(value: float, between: tuple[float, float]) -> float:
    low, high = between
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))
