"""Collections: what is searched and judged. Imports nothing of indexer, search or cli."""
