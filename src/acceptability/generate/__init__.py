"""Sentences that are made: fakes from real ones, and paradigms from templates and a lexicon."""
