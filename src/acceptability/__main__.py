"""``python -m acceptability``: the command line."""

from acceptability.cli import main

# Tools that import every module, such as doctest collectors, must not start the command line.
if __name__ == "__main__":
    main()
