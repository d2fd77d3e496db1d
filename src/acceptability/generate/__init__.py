"""Sentences that are made: fakes from real ones."""
