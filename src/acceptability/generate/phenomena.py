"""What can be made without writing anything: the files of paradigms that come with the package, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from acceptability.errors import SpellingError, UnknownName
from acceptability.generate.making import made, suite_of
from acceptability.generate.paradigm import ParadigmFile
from acceptability.generate.reading import read_paradigms
from acceptability.generate.writing import Made
from acceptability.text import content_of, decoded
from acceptability.types import Suite

NPI = "npi"
# 136,000 sentences: as many paradigms of simple questions as of the others, though they have half the sentences.
_PAPER_COUNT = {"simplequestions": 1000}
_SHIPPED = (
    NPI,
    "agreement",
    "reflexives",
    "filler-gap",
    "targeted/svo",
    "targeted/wh",
    "targeted/causative",
    "targeted/sv-agreement",
    "targeted/reflexive",
)


def is_file(subject: str) -> bool:
    """Tell whether a name means a user's file of paradigms."""
    return subject.lower().endswith(".toml")


def paradigm_files(subject: str) -> list[ParadigmFile]:
    """Return the paradigms of a name that comes with the package, or of a user's file."""
    if is_file(subject):
        return [_read(Path(subject))]
    if subject not in _SHIPPED:
        raise UnknownName("paradigm", subject, _SHIPPED, hint="What can be made: " + ", ".join(_SHIPPED) + ".")
    place = files("acceptability.generate").joinpath("paradigms")
    if subject == NPI:
        found = sorted(place.joinpath(NPI).iterdir(), key=lambda each: each.name)
        return [_read(each) for each in found if each.name.endswith(".toml")]
    return [_read(place.joinpath(f"{subject}.toml"))]


def _read(path: Path | Traversable) -> ParadigmFile:
    content = content_of(path) if isinstance(path, Path) else path.read_bytes()
    where = str(path) if isinstance(path, Path) else path.name
    return read_paradigms(decoded(content, where), where)


def paradigms(
    subject: str,
    *,
    seed: int = 0,
    count: int | None = None,
    paper_counts: bool = False,
    tally: Counter[str] | None = None,
) -> Iterator[Made]:
    """Return a stream of sentences.

    Args:
        subject: A name, such as ``npi``, or a user's file of paradigms.
        count: How many paradigms of each template, if not as many as its file says.
        paper_counts: For ``npi``: 136,000 sentences as the paper says, instead of 144,000.
        tally: Counts what is made.
    """
    found = paradigm_files(subject)
    if paper_counts:
        found = _as_in_the_paper(subject, found)
    if count is not None:
        found = _counted(subject, found, count)
    return made(found, seed=seed, tally=tally)


def _as_in_the_paper(subject: str, found: Sequence[ParadigmFile]) -> list[ParadigmFile]:
    if subject != NPI:
        raise SpellingError(f"the counts of the paper are for {NPI}, not for {subject}; leave --paper-counts away")
    return [
        each.counting({one.name: _PAPER_COUNT[each.name] for one in each.paradigms if each.name in _PAPER_COUNT})
        for each in found
    ]


def _counted(subject: str, found: Sequence[ParadigmFile], count: int) -> list[ParadigmFile]:
    if count < 1:
        raise SpellingError(f"the count is {count}; expected 1 or more")
    if any(each.cross for file in found for each in file.paradigms):
        raise SpellingError(f"{subject} makes every combination of its words; leave --count away")
    return [file.counting({each.name: count for each in file.paradigms}) for file in found]


def generated_suite(subject: str, *, seed: int = 0, count: int | None = None) -> Suite:
    """Return a suite of made sentences.

    >>> generated_suite("targeted/reflexive")
    Suite('targeted/reflexive', 144 sentences, 0 contrasts)
    """
    return suite_of(subject, paradigms(subject, seed=seed, count=count))


def titles() -> dict[str, str]:
    """Return every name that comes with the package, and what it makes."""
    return {name: paradigm_files(name)[0].title for name in _SHIPPED}


npi = partial(paradigms, NPI)
agreement = partial(paradigms, "agreement")
reflexives = partial(paradigms, "reflexives")
filler_gap = partial(paradigms, "filler-gap")
svo = partial(paradigms, "targeted/svo")
wh = partial(paradigms, "targeted/wh")
causative = partial(paradigms, "targeted/causative")
sv_agreement = partial(paradigms, "targeted/sv-agreement")
reflexive = partial(paradigms, "targeted/reflexive")
