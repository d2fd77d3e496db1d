"""The one rule of bad input: a value, or an error of ours in one line; in time, and in bounds."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

from acceptability.errors import AcceptabilityError

LARGEST = 20_000
"""How many bytes a fuzzed input has at most."""
SECONDS = 5.0
"""How long an input of that size may take."""
MEGABYTES = 500
"""How much more memory the process may need in the end than in the beginning."""
LONGEST = 3_000
"""How many characters a message may have."""


class Broken(AssertionError):
    """An input broke the rule."""


def obey(call: Callable[[bytes], object], data: bytes) -> bool:
    """Check the rule for one input; tell whether it gave a value."""
    # CPU time of this thread: on a busy machine the clock on the wall runs for others too.
    start = time.thread_time()
    try:
        call(data)
        is_value = True
    except AcceptabilityError as error:
        is_value = False
        check_message(str(error))
    took = time.thread_time() - start
    if took > SECONDS:
        raise Broken(f"{len(data)} bytes took {took:.1f} s of CPU time; at most {SECONDS} are allowed")
    return is_value


def check_message(message: str) -> None:
    """Refuse a message that is empty, long, of several lines, or that a terminal would obey."""
    if not message.strip():
        raise Broken("the message is empty")
    if len(message) > LONGEST:
        raise Broken(f"the message has {len(message)} characters: {message[:200]!r}")
    strange = [each for each in message if not (each.isprintable() or each == " ")]
    if strange:
        raise Broken(f"the message has {strange[0]!r} in it: {message[:200]!r}")


def memory() -> float:
    """Return the most memory that this process has needed so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
