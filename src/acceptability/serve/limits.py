"""How much may be asked of the server at once, and how often."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from fastapi import HTTPException

TRIES_A_MINUTE = 10
"""How often one address may send a wrong token."""

_MOST_ADDRESSES = 10_000


@dataclass(frozen=True)
class Limits:
    """What one visitor may ask for.

    Args:
        upload_bytes: The largest request, and so the largest table.
        characters: The longest sentence.
        sentences: How many sentences one judgement may take.
        table_sentences: How many sentences a table or a suite may have.
        per_minute: How many requests for work one address may send in a minute.
        waiting: How many judgements may wait for one model.
        jobs: How many evaluations may wait.
        body_seconds: How long a request may take to arrive.
    """

    upload_bytes: int = 5_000_000
    characters: int = 2_000
    sentences: int = 50
    table_sentences: int = 20_000
    per_minute: int = 600
    waiting: int = 1_000
    jobs: int = 20
    body_seconds: float = 60.0


def check_sentences(sentences: Sequence[str], limits: Limits) -> None:
    """Refuse more, or longer, sentences than one judgement takes."""
    if len(sentences) > limits.sentences:
        raise HTTPException(
            413, f"{len(sentences)} sentences are too many at once; the limit is {limits.sentences}. Make a table."
        )
    for text in sentences:
        if len(text) > limits.characters:
            raise HTTPException(
                413, f"a sentence has {len(text):,} characters; the limit is {limits.characters:,}. Shorten it."
            )


def check_table(sentences: int, limits: Limits) -> None:
    """Refuse a table with too many sentences."""
    if sentences > limits.table_sentences:
        raise HTTPException(
            413,
            f"there are {sentences:,} sentences; the limit is {limits.table_sentences:,}. Take a part, raise the limit "
            "with --most-sentences, or use the command line: acceptability evaluate",
        )


def too_large(limits: Limits) -> HTTPException:
    """Return the refusal of a request with too many bytes."""
    return HTTPException(
        413,
        f"this is larger than {limits.upload_bytes / 1e6:,.1f} MB, the limit for an upload. Take a part of the table, "
        "raise the limit with --most-megabytes, or use the command line: acceptability evaluate",
    )


def too_slow(limits: Limits) -> HTTPException:
    """Return the refusal of a request that does not arrive; who sends so slowly is not listened to any longer."""
    return HTTPException(
        408,
        f"the request did not arrive within {limits.body_seconds:g} seconds. Send it again, or a smaller one.",
        headers={"Connection": "close"},
    )


class Rate:
    """Counts what each address asks for: so many in a minute, saved up while it is quiet."""

    def __init__(self, per_minute: int) -> None:
        self._most = float(per_minute)
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Count one request; refuse it if there were too many."""
        now = time.monotonic()
        with self._lock:
            left = self._saved(address, now)
            if left >= 1:
                self._left[address] = (left - 1, now)
                if len(self._left) > _MOST_ADDRESSES:
                    self._forget(now)
                return
        raise self._refusal()

    def check_left(self, address: str) -> None:
        """Refuse a request if there were too many, and count nothing."""
        with self._lock:
            left = self._saved(address, time.monotonic())
        if left < 1:
            raise self._refusal()

    def _saved(self, address: str, now: float) -> float:
        """Return how many requests an address has left."""
        left, last = self._left.get(address, (self._most, now))
        return min(self._most, left + (now - last) * self._most / 60)

    def _refusal(self) -> HTTPException:
        return HTTPException(
            429,
            f"too many requests from your address; the limit is {self._most:.0f} a minute. Wait a moment.",
        )

    def _forget(self, now: float) -> None:
        """Drop addresses that have been quiet for a minute: all is saved up again."""
        self._left = {address: (left, last) for address, (left, last) in self._left.items() if now - last < 60}
