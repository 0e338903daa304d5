"""What can go wrong between an opened index and a page of figures.

SearchError
    QueryError          (ValueError)  a query, or a number of hits, that cannot be answered
        FilterError                   a metadata filter that cannot be applied
    EvaluationError     (ValueError)  figures that cannot be computed
        MeasureError                  a measure that is not known, or that nothing installed provides
        NoJudgementsError             not one judged query to score
        RunFileError                  a run or a file of scores that cannot be read or written
        ExpectationError              an expected figure that cannot be read, or names what was not measured
    DiagnosisError      (ValueError)  a word, text or file on which a diagnosis cannot be made
"""


class SearchError(Exception):
    """Root of all errors about queries, evaluation and presentation."""


class QueryError(SearchError, ValueError):
    """A query, or what was asked for with it, cannot be answered."""


class FilterError(QueryError):
    """A metadata filter is not of the form field=value, or names a field that no document has."""


class EvaluationError(SearchError, ValueError):
    """Figures cannot be computed from what was given."""


class MeasureError(EvaluationError):
    """A measure is not known, lacks a parameter, or has no installed provider."""


class NoJudgementsError(EvaluationError):
    """There is no judged query to score."""


class RunFileError(EvaluationError):
    """A run file, or a file of scores or judgements, cannot be read or written."""


class ExpectationError(EvaluationError):
    """An expected figure cannot be read, or names a retriever or measure that was not evaluated."""


class DiagnosisError(SearchError, ValueError):
    """A diagnosis cannot be made on the word, texts, vectors or file it was given."""
