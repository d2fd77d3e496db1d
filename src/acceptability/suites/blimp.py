"""BLiMP, the Benchmark of Linguistic Minimal Pairs (Warstadt et al. 2020).

67 paradigms of 1,000 pairs. The paradigm is a tag, and so are the phenomenon, the
field and the item. Ids: ``PHENOMENON/PARADIGM/PAIR/good`` and ``.../bad``.

Traps: the data have 13 linguistics terms where the paper has 12 phenomena; the tag
``phenomenon`` counts s-selection as argument_structure, as the paper does, and
``linguistics_term`` keeps the published value. ``field`` is once spelled
"syntax/semantics". Seven pairs have the same sentence twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from acceptability.suites.catalog import Entry
from acceptability.suites.pairs import Pair, pair, suite_of_pairs
from acceptability.text import lines
from acceptability.types import Suite

_AS_IN_THE_PAPER = {"s-selection": "argument_structure", "syntax/semantics": "syntax_semantics"}


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return all pairs of all paradigms."""
    rows = (line for path, content in files.items() for _, line in lines(content, f"{entry.folder}/{path}"))
    return suite_of_pairs(entry.id, (_pair(json.loads(row)) for row in rows))


def _pair(row: Mapping[str, str]) -> Pair:
    term = row["linguistics_term"]
    phenomenon = _AS_IN_THE_PAPER.get(term, term)
    item = f"{phenomenon}/{row['UID']}/{row['pairID']}"
    tags = {
        "field": _AS_IN_THE_PAPER.get(row["field"], row["field"]),
        "phenomenon": phenomenon,
        "linguistics_term": term,
        "paradigm": row["UID"],
    }
    return pair(item, row["sentence_good"], row["sentence_bad"], tags)
