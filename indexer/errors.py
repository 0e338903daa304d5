"""What can go wrong between texts and a finished index.

IndexerError
    SpecError                (ValueError)         a retriever notation that cannot be parsed
    ModelError               (ValueError)         a model or word-vector file that cannot be used
        ModelNotFoundError   (FileNotFoundError)  no such model folder, file or installed package
        UntrustedPickleError                      a pickle, and no permission to load it
    NotAnIndexError          (ValueError)         the folder is no twindex index
    DamagedIndexError        (ValueError)         a file of the index is missing or damaged
    FormatVersionError       (ValueError)         written by another format of twindex
    PortabilityError         (ValueError)         vectors of one space asked for in another
    IndexBusyError           (RuntimeError)       another process is writing this index
    FactoryError             (ValueError)         a FAISS factory string that cannot be built
        TooFewVectorsError                        a FAISS kind that cannot be trained on so few vectors
"""

#: The command that makes an index of another format one of this format.
REBUILD = "twindex index COLLECTION INDEX"


class IndexerError(Exception):
    """Root of all errors about encoders, stores and index folders."""


class SpecError(IndexerError, ValueError):
    """A retriever, whitening or encoder notation cannot be parsed."""


class ModelError(IndexerError, ValueError):
    """A model or word-vector file cannot be used; the message names file and, where it has lines, line."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """No model is to be found where one was asked for."""

    def __str__(self) -> str:
        """Return the message alone (FileNotFoundError would add an errno)."""
        return str(self.args[0]) if self.args else ""


class UntrustedPickleError(ModelError):
    """Loading would run a pickle, and the user has not said that it may."""


class NotAnIndexError(IndexerError, ValueError):
    """The folder holds no published twindex index."""


class DamagedIndexError(IndexerError, ValueError):
    """A file of the index is missing, truncated or altered."""


class FormatVersionError(IndexerError, ValueError):
    """The index was written by another format version."""


class PortabilityError(IndexerError, ValueError):
    """A vector of one space (model, layer, pooling, whitening) was asked for in another."""


def other_format(what: str, found: object, expected: object) -> FormatVersionError:
    """Return the error that says which format something of an index has, which is read, and what to do."""
    message = f"{what} has format version {found}, this twindex reads {expected}; build it anew: {REBUILD}"
    return FormatVersionError(message)


class IndexBusyError(IndexerError, RuntimeError):
    """Another process is writing this index."""


class FactoryError(IndexerError, ValueError):
    """FAISS cannot build this index factory for this collection."""


class TooFewVectorsError(FactoryError):
    """A FAISS kind cannot be trained on as few vectors as there are."""
