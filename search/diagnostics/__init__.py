"""Looks into the space of an index."""
