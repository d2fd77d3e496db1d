"""Every reader, whatever it is given: a value, or one line that says what is wrong."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, seed, settings

from .counting import FEW, SECONDS_EACH, Count, counted
from .inputs import make_inputs, mutated
from .rule import MEGABYTES, Broken, memory, obey
from .targets import Target, targets


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_whatever_is_read_gives_a_value_or_one_line(target: Target) -> None:
    before = memory()
    with counted(target.name) as count:
        for each in target.seeds:
            assert obey(target.read, each), f"the seed {each!r} is refused"
        _generated(target, count)
        _damaged(target, count)
    if memory() - before > MEGABYTES:
        raise Broken(f"{memory() - before:.0f} MB more are needed after {count.inputs} small inputs")


def _generated(target: Target, count: Count) -> None:
    """Try inputs of hypothesis, in rounds, until the time is up."""

    @settings(
        max_examples=count.round, database=None, derandomize=False, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(make_inputs(target))
    def one(data: bytes) -> None:
        count.inputs += 1
        obey(target.read, data)

    number = 0
    while number == 0 or count.seconds < SECONDS_EACH / 2:
        seed(number)(one)()
        number += 1


def _damaged(target: Target, count: Count) -> None:
    """Try seeds that were damaged, until the time is up."""
    for tried, data in enumerate(mutated(target, Random(target.name)), start=1):
        count.inputs += 1
        try:
            obey(target.read, data)
        except Exception as error:
            error.add_note(f"the input: {data!r}")
            raise
        if tried >= FEW and count.seconds >= SECONDS_EACH:
            return
