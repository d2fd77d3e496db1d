"""Where the files of a model may be that a signature names: ``trigram@5732531b85a8``, a name and a content hash.

A signature has no folders, so that it is the same on every machine. Its files are looked for in the current folder,
among the models of packages, in folders that the user names, and on the Hugging Face Hub, at the commit with these
digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from acceptability.errors import ModelError, first_error_line
from acceptability.models.files import is_importable

HUB_KINDS = ("causal", "masked", "seq2seq", "classifier")
"""The kinds of models whose location may be an id on the Hub."""

# A signature has the first twelve digits of a content hash or of a commit.
_SIGNED = re.compile(r"(.+)@([0-9a-f]{12})\Z", re.DOTALL)
# Models lie in a folder of models, perhaps below one more level, such as the owner's name. Searching deeper would take
# minutes in a home folder.
_SEARCH_PATTERNS = ("{}", "*/{}", "*/*/{}")


def split_signed_location(location: str) -> tuple[str, str] | None:
    """Return the name and the version in the location of a signature; None for any other location.

    >>> split_signed_location("trigram@5732531b85a8")
    ('trigram', '5732531b85a8')
    >>> split_signed_location("gpt2@main") is None
    True
    """
    match = _SIGNED.match(location)
    return (match[1], match[2]) if match else None


def iter_signed_locations(
    kind: str, location: str, *, packaged: Sequence[Path], look_in: Sequence[Path]
) -> Iterator[str]:
    """Yield the locations at which the model of a signature may be opened, the likeliest first.

    Args:
        kind: The kind of model.
        location: Name and version, as in a signature.
        packaged: The files and folders of the models that come with packages.
        look_in: Folders to search.
    """
    signed = split_signed_location(location)
    if signed is None or Path(location).expanduser().exists():
        yield location
        return
    name, version = signed
    # A name with an owner is an id on the Hub, and a folder that was copied from there has its last part.
    file_name = Path(name).name
    candidates = [Path(name)] if Path(name).expanduser().exists() else []
    candidates += [path for path in packaged if path.name == file_name]
    for folder in look_in:
        candidates += [folder] if folder.resolve().name == file_name else []
        candidates += [path for pattern in _SEARCH_PATTERNS for path in _search(folder, pattern.format(file_name))]
    yield from (f"{path}@{version}" for path in dict.fromkeys(candidates))
    # Nothing is asked of the Hub for the name of a folder that is here with another content.
    if not candidates and kind in HUB_KINDS and (commit := _find_hub_commit(name, version)):
        yield f"{name}@{commit}"


def _search(folder: Path, pattern: str) -> list[Path]:
    # The name comes from a signature, perhaps a stranger's: it must not lead out of the folder, or be a pattern.
    if any(character in pattern.replace("*/", "") for character in "*?[/\\"):
        return []
    return sorted(folder.expanduser().glob(pattern))


def _find_hub_commit(name: str, digits: str) -> str | None:
    """Return the commit of a model on the Hub whose number starts with these digits; None if there is none."""
    if not is_importable("huggingface_hub") or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        return None
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    # The Hub takes whole commits only. One that was downloaded before is found without a request.
    snapshots = Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    if downloaded := sorted(path.name for path in snapshots.glob(f"{digits}*")):
        return downloaded[0]
    try:
        commits = [commit.commit_id for commit in HfApi().list_repo_commits(name)]
    except OfflineModeIsEnabled:
        return None
    except _list_hub_errors(HfHubHTTPError, HFValidationError) as error:
        raise ModelError(
            f"{name}@{digits} is not on this machine, and the Hugging Face Hub names no commits: "
            f"{first_error_line(error)}"
        ) from error
    return next((commit for commit in commits if commit.startswith(digits)), None)


def _list_hub_errors(*own: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors of a request to the Hub: its own, and those of the library that it connects with."""
    # requests, whose errors are OSErrors, before version 1 of huggingface_hub, and httpx since then.
    if not is_importable("httpx"):
        return (*own, OSError, RuntimeError)
    error: type[Exception] = import_module("httpx").HTTPError
    return (*own, OSError, RuntimeError, error)
