"""Generated sentences: paradigms from templates and a lexicon, with labels, tags and contrasts.

This module has the built-in paradigm files, by name, and the entry points: ``generate_paradigms`` streams sentences,
``generate_suite`` returns a suite; both also accept a user's paradigm file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from acceptability.errors import SpecError, UnknownName
from acceptability.generate.generator import GeneratedSentence, build_suite, generate_sentences
from acceptability.generate.paradigm import ParadigmFile
from acceptability.generate.parser import read_paradigms
from acceptability.paths import TrustBoundary
from acceptability.text.io import decode_utf8, read_content
from acceptability.types import Suite

NPI = "npi"
# The paper (Warstadt et al. 2019) reports 136,000 sentences. That is 1000 paradigms of simple questions, as of the
# other environments, although their paradigms have half the sentences; twice as many make all environments equal.
_PAPER_COUNTS = {"simplequestions": 1000}
_BUILT_IN = (
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


def is_paradigm_file(subject: str) -> bool:
    """Return whether a name is the path of a user's paradigm file."""
    return subject.lower().endswith(".toml")


def load_paradigm_files(subject: str, *, allow: Sequence[str] = ()) -> list[ParadigmFile]:
    """Return the paradigm files of a built-in name, or a user's paradigm file.

    Args:
        subject: The name, or the path of the file.
        allow: Where a paradigm file may lead besides its own folder, if it is a symbolic link (see ``TrustBoundary``).
    """
    if is_paradigm_file(subject):
        TrustBoundary(Path(subject), allow)
        return [_read_paradigm_file(Path(subject))]
    if subject not in _BUILT_IN:
        raise UnknownName("paradigm", subject, _BUILT_IN, hint="The built-in ones are: " + ", ".join(_BUILT_IN) + ".")
    folder = files("acceptability.generate").joinpath("data", "paradigms")
    if subject == NPI:
        # Sorted, because the order of a folder varies between systems, and later files avoid the sentences of earlier.
        npi_files = sorted(folder.joinpath(NPI).iterdir(), key=lambda path: path.name)
        return [_read_paradigm_file(path) for path in npi_files if path.name.endswith(".toml")]
    return [_read_paradigm_file(folder.joinpath(f"{subject}.toml"))]


def _read_paradigm_file(path: Path | Traversable) -> ParadigmFile:
    # Built-in files are package resources, which need not be files on disk.
    content = read_content(path) if isinstance(path, Path) else path.read_bytes()
    where = str(path) if isinstance(path, Path) else path.name
    return read_paradigms(decode_utf8(content, where), where)


def generate_paradigms(
    subject: str,
    *,
    seed: int = 0,
    count: int | None = None,
    paper_counts: bool = False,
    tally: Counter[str] | None = None,
    allow: Sequence[str] = (),
) -> Iterator[GeneratedSentence]:
    """Return an iterator over generated sentences.

    Args:
        subject: A built-in name, such as ``npi``, or the path of a paradigm file.
        seed: The seed of all random choices.
        count: The number of paradigms per template; by default that in the file.
        paper_counts: For ``npi``: 136,000 sentences as in the paper, instead of 144,000.
        tally: A counter of paradigms, sentences, acceptable sentences and contrasts, updated during generation.
        allow: Where a paradigm file may lead besides its own folder, if it is a symbolic link.
    """
    if allow and not is_paradigm_file(subject):
        raise SpecError(f"{subject} comes with the package and opens nothing else; omit --allow")
    loaded_files = load_paradigm_files(subject, allow=allow)
    if paper_counts:
        loaded_files = _apply_paper_counts(subject, loaded_files)
    if count is not None:
        loaded_files = _override_counts(subject, loaded_files, count)
    return generate_sentences(loaded_files, seed=seed, tally=tally)


def _apply_paper_counts(subject: str, loaded_files: Sequence[ParadigmFile]) -> list[ParadigmFile]:
    if subject != NPI:
        raise SpecError(f"the counts of the paper are for {NPI}, not for {subject}; omit --paper-counts")
    return [
        file.with_counts(
            {paradigm.name: _PAPER_COUNTS[file.name] for paradigm in file.paradigms if file.name in _PAPER_COUNTS}
        )
        for file in loaded_files
    ]


def _override_counts(subject: str, loaded_files: Sequence[ParadigmFile], count: int) -> list[ParadigmFile]:
    if count < 1:
        raise SpecError(f"the count is {count}; expected 1 or more")
    # Crossed paradigms are exhaustive: a count would contradict them.
    if any(paradigm.cross for file in loaded_files for paradigm in file.paradigms):
        raise SpecError(f"{subject} makes every combination of its words; omit --count")
    return [file.with_counts({paradigm.name: count for paradigm in file.paradigms}) for file in loaded_files]


def generate_suite(subject: str, *, seed: int = 0, count: int | None = None, allow: Sequence[str] = ()) -> Suite:
    """Return a suite of generated sentences; the arguments are those of ``generate_paradigms``.

    >>> generate_suite("targeted/reflexive")
    Suite('targeted/reflexive', 144 sentences, 0 contrasts, unit='set')
    """
    return build_suite(subject, generate_paradigms(subject, seed=seed, count=count, allow=allow))


def list_titles() -> dict[str, str]:
    """Return the built-in names with their titles."""
    return {name: load_paradigm_files(name)[0].title for name in _BUILT_IN}


# Entry points by name, for the registry of generated suites.
npi = partial(generate_paradigms, NPI)
agreement = partial(generate_paradigms, "agreement")
reflexives = partial(generate_paradigms, "reflexives")
filler_gap = partial(generate_paradigms, "filler-gap")
svo = partial(generate_paradigms, "targeted/svo")
wh = partial(generate_paradigms, "targeted/wh")
causative = partial(generate_paradigms, "targeted/causative")
sv_agreement = partial(generate_paradigms, "targeted/sv-agreement")
reflexive = partial(generate_paradigms, "targeted/reflexive")
