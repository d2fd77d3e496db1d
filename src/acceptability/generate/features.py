"""The features of the lexicon: their types, their values, and the tree of kinds.

``lexicon/features.toml`` lists them. A feature has the type ``word`` (one or more of the values listed), ``kind``
(what a noun denotes), ``kinds`` (what a verb or an adjective goes with) or ``text``. Some are not fixed for a word but
chosen in a sentence: the number of a noun, the form of a verb.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from acceptability.errors import SuiteError, suggestion

Values = tuple[str, ...]


@dataclass(frozen=True)
class Feature:
    """A feature: its name, its type, the categories that have it, its values, and where it is chosen."""

    name: str
    type: str
    of: Values
    values: Values
    choice: Values
    says: str

    def check(self, value: str, kinds: Kinds) -> None:
        """Refuse a value that the feature cannot have."""
        known = {"word": self.values, "kind": kinds.names, "kinds": kinds.names}.get(self.type)
        if known is not None and value not in known:
            raise SuiteError(
                f"{self.name} has no value {value!r}.{suggestion(value, known)} Its values are {', '.join(known)}."
            )


@dataclass(frozen=True)
class Kinds:
    """The tree of kinds: an adult is a person, a person is animate.

    >>> sorted(Kinds({"person": ("adult", "child")}).above("adult"))
    ['adult', 'person']
    """

    below: Mapping[str, Values]

    @cached_property
    def names(self) -> Values:
        """Every kind, the broader ones first."""
        return tuple(dict.fromkeys([*self.below, *(each for under in self.below.values() for each in under)]))

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        parent = {each: broad for broad, under in self.below.items() for each in under}
        return {name: frozenset(_line(name, parent)) for name in self.names}

    def above(self, kind: str) -> frozenset[str]:
        """Return a kind and all that it belongs to."""
        return self._above[kind]

    def is_among(self, kinds: Iterable[str], broad: Iterable[str]) -> bool:
        """Tell whether one of some kinds is, or belongs to, one of the broad ones."""
        wanted = set(broad)
        return any(self.above(kind) & wanted for kind in kinds)


@dataclass(frozen=True)
class Features:
    """All features, the categories with their files, and the kinds."""

    features: Mapping[str, Feature]
    categories: Mapping[str, str]
    kinds: Kinds

    def category(self, name: str) -> str:
        """Return the name of a category, if there is one of that name."""
        if name not in self.categories:
            raise SuiteError(
                f"there is no category {name!r}.{suggestion(name, self.categories)} "
                f"The categories are {', '.join(self.categories)}."
            )
        return name

    def feature(self, category: str, name: str) -> Feature:
        """Return a feature of a category."""
        found = self.features.get(name)
        if found is not None and category in found.of:
            return found
        known = [each for each, feature in self.features.items() if category in feature.of]
        raise SuiteError(f"a {category} has no feature {name!r}.{suggestion(name, known)} It has {', '.join(known)}.")


def lexicon_file(name: str) -> Traversable:
    """Return a file of the lexicon that comes with the package."""
    return files("acceptability.generate").joinpath("lexicon", name)


@cache
def features() -> Features:
    """Return the features that ``lexicon/features.toml`` lists."""
    read = tomllib.loads(lexicon_file("features.toml").read_text(encoding="utf-8"))
    found = {
        name: Feature(
            name, row["type"], tuple(row["of"]), tuple(row.get("values", ())), tuple(row.get("choice", ())), row["says"]
        )
        for name, row in read["features"].items()
    }
    return Features(found, read["categories"], Kinds({name: tuple(under) for name, under in read["kinds"].items()}))


def _line(name: str, parent: Mapping[str, str]) -> list[str]:
    found = [name]
    while found[-1] in parent:
        found.append(parent[found[-1]])
    return found
