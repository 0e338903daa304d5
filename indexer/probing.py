"""What models would say of texts before an index is built: how many fit the window, how many words are known."""

from collections.abc import Callable, Sequence

from corpora.survey import Probes
from indexer.static.tokenizer import token_ids


def probes(counted: Callable[[int], None]) -> Probes:
    """Return the questions that a survey asks of the built-in models.

    Parameters
    ----------
    counted
        Told how many word pieces each batch of sampled texts has.
    """
    return Probes(exceeds_window=_window(counted), count_known_words=_known)


def _window(counted: Callable[[int], None]) -> Callable[[Sequence[str]], Sequence[bool]]:
    from indexer.contextual.tokenization import open_tokenizer
    from indexer.contextual.transformer import TransformerSpec

    tokenizer = open_tokenizer(TransformerSpec())

    def exceeds(texts: Sequence[str]) -> Sequence[bool]:
        lengths = tokenizer.lengths(texts)
        counted(int(lengths.sum()))
        exceeding: list[bool] = (lengths > tokenizer.budget).tolist()
        return exceeding

    return exceeds


def _known(texts: Sequence[str]) -> tuple[int, int]:
    from indexer.static.vocabulary import Vocabulary
    from indexer.static.word_vectors import load_word_vectors

    found = token_ids(texts, Vocabulary.of(load_word_vectors("glove").words))
    return int((found.ids >= 0).sum()), len(found.ids)
