"""Benchmarks: speed, memory and size of this package, alone and against other tools."""
