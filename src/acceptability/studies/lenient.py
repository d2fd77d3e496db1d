"""Models of words under the protocol of the papers: a sentence of unknown words alone is so many ``<unk>``.

Elsewhere such a sentence is refused, for it tells more about a vocabulary than about a sentence. What is said
here is kept in the store under another signature, so that it never answers for what is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from acceptability.models import load_model
from acceptability.protocols import Encoded, Model
from acceptability.types import Query, Said


@dataclass(frozen=True)
class Lenient:
    """A model that also takes sentences in which it knows no word."""

    model: Model

    @property
    def signature(self) -> str:
        """That of the model, and that it is lenient."""
        return f"{self.model.signature}[lenient]"

    def encode(self, queries: Sequence[Query]) -> Sequence[Encoded]:
        """Return the queries in the model's own terms."""
        return self.model.encode(queries)

    def run(self, batch: Sequence[Encoded]) -> Sequence[Said]:
        """Return what the model says to each."""
        return self.model.run(batch)

    def __getattr__(self, name: str) -> Any:
        """Return how the model likes its work."""
        return getattr(self.model, name)


def lenient(model: str) -> str | Lenient:
    """Return a model that refuses sentences of unknown words as one that takes them; another one as it is.

    >>> lenient("uniform")
    'uniform'
    """
    opened = load_model(model)
    if not hasattr(opened, "lenient") or not is_dataclass(opened) or isinstance(opened, type):
        return model
    return Lenient(replace(opened, lenient=True))
