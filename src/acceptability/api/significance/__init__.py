"""Decisions between models: all pairs of several models, equivalence within a margin, and how many items it takes."""
