"""``python -m acceptability``: the command line."""

from acceptability.cli import main

main()
