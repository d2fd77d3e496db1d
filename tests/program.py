"""The program as it is typed, in a process of its own for every call, without the time that a start takes.

One process has loaded all commands, with the libraries that most of them import when they run, and waits; for each call
it forks, and the child runs ``main`` in the folder and with the environment that are asked for, its output going into
files. What a start itself does is tested elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]


def typed(arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Done:
    """Run the program and return how it ended, with what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        asked = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "out": str(out), "err": str(err)}
        waiting = _waiting()
        assert waiting.stdin is not None
        assert waiting.stdout is not None
        waiting.stdin.write(json.dumps(asked) + "\n")
        waiting.stdin.flush()
        code = int(waiting.stdout.readline())
        said = [path.read_bytes().decode("utf-8") for path in (out, err)]
    return subprocess.CompletedProcess(list(arguments), code, *said)


@cache
def _waiting() -> subprocess.Popen[str]:
    command = [sys.executable, __file__]
    found = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    atexit.register(_end, found)
    return found


def _end(waiting: subprocess.Popen[str]) -> None:
    waiting.communicate()


# What commands import when they need it, each of which would otherwise be imported hundreds of times. PyTorch is left
# out: few commands need it, and every fork of a process as large takes longer.
_LOADED_LATE = (
    "acceptability.api.contrasts",
    "acceptability.api.linking",
    "acceptability.api.reproduction",
    "acceptability.api.review",
    "acceptability.models.ngram",
    "acceptability.models.prompted",
    "acceptability.papers.adc",
    "acceptability.papers.cola",
    "acceptability.papers.humans",
    "acceptability.papers.niu_penn",
    "acceptability.papers.park",
    "acceptability.report.export",
    "acceptability.report.figures",
    "acceptability.report.page",
    "acceptability.train.ngram_recipes",
    "encodings.utf_8_sig",
    "pandas",
    # With what it imports itself when the first class of pydantic is made, after a look at all that is installed.
    "pydantic.plugin._loader",
    "rich._emoji_codes",
    "scipy.optimize",
    "scipy.stats",
    "typer._adapters",
    "typer._click.decorators",
    "typer.rich_utils",
    "wordfreq",
)


def _serve() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ACCEPTABILITY_HOME"] = folder
        kept = _prepare(Path(folder))
        for line in sys.stdin:
            child = os.fork()
            if child == 0:
                _run(json.loads(line))
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        del kept


def _prepare(folder: Path) -> object:
    """Load what the children share, and return what has to be kept for it."""
    from acceptability import registry
    from acceptability.cli import build_application
    from acceptability.models import list_named_models, load_model
    from acceptability.suites import load_catalog
    from acceptability.types import Query

    build_application()
    for name in _LOADED_LATE:
        # Another release of a library may not have the module, or an environment not the library.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _share_bundle(folder / "vega.js")
    # What plug-ins are installed, and the catalog, which every command would look up anew.
    for kind in ("engine", "measure", "model", "reader", "recipe", "reduction", "study", "subject"):
        registry.names(kind)
    load_catalog()
    list_named_models()
    # The model of the examples, which stays loaded while it is in use, and what it knows of spelling.
    trigram = load_model("trigram")
    trigram.run(trigram.encode([Query("the blorbs")]))
    # A child that looked for garbage would write to, and so copy, the pages of everything that is loaded here.
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    return trigram


def _share_bundle(path: Path) -> None:
    """Have the script of report pages, which takes two seconds, made by the first child that needs it alone.

    Not made here: the library that makes it starts threads, which a forked child would not have and would wait for.
    """
    from acceptability.report import page

    make = page._bundle_vega

    def bundle() -> str:
        if not path.exists():
            path.write_bytes(make().encode())
        return path.read_bytes().decode()

    page._bundle_vega = bundle


def _run(asked: Mapping[str, Any]) -> None:
    """Be the program; never return."""
    from acceptability.cli import main

    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT), number)
    sys.stdin = io.StringIO()
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.argv = ["acceptability", *asked["arguments"]]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
