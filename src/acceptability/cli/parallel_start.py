"""The slow start of a first evaluation in two processes: one parses the suite, the other imports transformers.

A suite is parsed once, into a file that later commands map into memory; networks need libraries that take seconds to
import. Both would keep one core busy, one after the other.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence

from acceptability.specs import parse_model_spec
from acceptability.suites import is_unparsed, load_suite
from acceptability.timings import time_stage

_NETWORK_KINDS = ("causal", "masked", "seq2seq", "classifier")


def start_in_parallel(suites: Sequence[str], models: Sequence[str]) -> None:
    """Parse suites of the catalog that were never parsed, while what networks need is imported here.

    Args:
        suites: The names of the suites.
        models: The specs of the models.
    """
    unparsed = [name for name in suites if is_unparsed(name)]
    devices = [
        str(options.get("device", "auto"))
        for kind, _, options in map(parse_model_spec, models)
        if kind in _NETWORK_KINDS
    ]
    if not unparsed or not devices:
        return
    # Spawned and not forked, since this process may have threads. An error there occurs here again, with a message.
    process = multiprocessing.get_context("spawn").Process(target=_parse_suites, args=[unparsed], daemon=True)
    process.start()
    with time_stage("open model"):
        # Imported here, since commands without a network need none of it.
        from acceptability.models.hf.loading import import_transformers

        import_transformers(devices[0])
    with time_stage("read"):
        process.join()


def _parse_suites(names: Sequence[str]) -> None:
    """Read suites, which keeps them parsed; errors are left to the process that needs the suites."""
    from acceptability.errors import AcceptabilityError

    try:
        for name in names:
            load_suite(name)
    # Ctrl-C reaches this process too; the other one ends, and says so.
    except (AcceptabilityError, OSError, KeyboardInterrupt):
        return
