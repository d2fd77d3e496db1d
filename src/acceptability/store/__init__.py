"""What is kept: what models said, and the runs that were made of it."""
