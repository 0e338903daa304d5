"""Paired benchmarks against peers; `make bench` runs them."""
