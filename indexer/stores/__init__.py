"""Where vectors, postings and documents are kept."""
