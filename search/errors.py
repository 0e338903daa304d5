"""What can go wrong between an opened index and a page of figures.

SearchError
    QueryError          (ValueError)  a query, or a number of hits, that cannot be answered
        FilterError                   a metadata filter that cannot be applied
"""


class SearchError(Exception):
    """Root of all errors about queries, evaluation and presentation."""


class QueryError(SearchError, ValueError):
    """A query, or what was asked for with it, cannot be answered."""


class FilterError(QueryError):
    """A metadata filter is not of the form field=value, or names a field that no document has."""
