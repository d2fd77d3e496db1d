"""The public functions, one module per task: score, evaluate, compare, link, recalibrate, submit, review."""
