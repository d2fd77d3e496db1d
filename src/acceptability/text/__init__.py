"""Reading and writing text files, splitting text into words, and the vocabulary of word models."""
