"""Contextual encoders: a forward pass."""
