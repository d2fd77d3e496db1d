"""Ratings as rows of a table that loads again as a suite."""

from __future__ import annotations

from acceptability.people.ratings import Ratings


def rating_rows(ratings: Ratings) -> list[dict[str, object]]:
    """Return a row a sentence: id, text, label (where there is one), rating, sd, n, low, high, unit; then its tags.

    A tag that has the name of one of these columns gets ``tag_`` before it.
    """
    has_labels = any(each.sentence.label is not None for each in ratings.rows)
    rows: list[dict[str, object]] = []
    for each in ratings.rows:
        row: dict[str, object] = {"id": each.sentence.id, "text": each.sentence.text}
        row |= {"label": each.sentence.label} if has_labels else {}
        row |= {"rating": each.mean, "sd": each.sd, "n": each.n, "low": each.low, "high": each.high}
        row |= {"rating_unit": ratings.unit}
        rows.append(row | {f"tag_{name}" if name in row else name: tag for name, tag in each.sentence.tags.items()})
    return rows
