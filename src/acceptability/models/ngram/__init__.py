"""N-gram models: ARPA, KenLM and Sphinx files, models trained by this package, and the uniform baseline."""
