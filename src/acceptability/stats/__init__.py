"""Whether a number, or a difference between numbers, is more than chance."""
