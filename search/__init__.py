"""Queries to rankings, rankings to numbers, numbers to pages."""
