"""What a server is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from acceptability.serve.limits import Limits


@dataclass(frozen=True)
class Settings:
    """Where to listen, what is asked, and how much.

    Args:
        port: 0 for any that is free.
        token: Needed on any address but this machine's own.
        models: What visitors can ask.
    """

    host: str
    port: int
    token: str | None
    models: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
