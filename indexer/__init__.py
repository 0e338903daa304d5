"""Texts to vectors to stores."""
