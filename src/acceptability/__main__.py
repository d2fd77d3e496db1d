"""``python -m acceptability``: the command line."""

import atexit
import os
import sys

from acceptability.cli import main


def run_and_exit() -> None:
    """Run the command line and end the process, without waiting until PyTorch has cleared its memory."""
    status: object = None
    try:
        main()
    except SystemExit as error:
        status = error.code
    # Python would free every object and close CUDA, for a second or more, only for the system to take the memory back.
    # What programs register to be done at exit is done, such as the removal of temporary files.
    if "torch" in sys.modules and (status is None or isinstance(status, int)):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status or 0)
    sys.exit(status)  # type: ignore[arg-type]


# Tools that import every module, such as doctest collectors, must not start the command line.
if __name__ == "__main__":
    run_and_exit()
