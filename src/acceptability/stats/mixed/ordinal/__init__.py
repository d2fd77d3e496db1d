"""Ordinal regression: cumulative-link models of ratings, with or without crossed random effects."""
