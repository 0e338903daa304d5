"""Retrievers, and the searcher that runs them side by side."""
