"""Where things are kept: two environment variables and no settings file.

``ACCEPTABILITY_HOME`` holds the store, the runs and downloaded data (default: the
user's data folder). ``ACCEPTABILITY_DATA`` is a folder with local copies of data sets.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

from acceptability.errors import StoreError


def home() -> Path:
    """Return the folder that everything of ours is kept in."""
    given = os.environ.get("ACCEPTABILITY_HOME")
    folder = Path(given) if given else user_data_path("acceptability", appauthor=False)
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise StoreError(f"there is no home folder: {folder}. Name one in ACCEPTABILITY_HOME.") from error


def local_data() -> Path | None:
    """Return the folder with local copies of data sets, if one is named."""
    given = os.environ.get("ACCEPTABILITY_DATA")
    return Path(given).expanduser() if given else None
