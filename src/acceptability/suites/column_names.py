"""What the columns of a user's table mean, by their names, and what the words in a column of labels mean.

Names are compared without regard to case, spaces and punctuation. A column that the user names, or that has the
package's own name (``text``, ``label``), is taken; only without one a synonym is. Where two columns could be meant, or
a name contradicts what it would be taken for, the error names the option that decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from acceptability.errors import SpecError, SuiteError, shorten, suggest_name

TEXT_COLUMNS = ("text", "sentence")
"""The usual names of the column of sentences."""

NO_COLUMN = "-"
"""What stands for no column at all, where a column is not to be taken for what its name says: ``label=-``."""

# The names for each meaning. Names in one group are equals, and a later group is looked at only if none of those before
# is there. JSON of our own has the last four, under these very names.
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "id": (("id", "sentence_id"),),
    "text": (TEXT_COLUMNS, ("sentences", "sent", "utterance", "stimulus")),
    "good": (("good", "sentence_good", "good_sentence"),),
    "bad": (("bad", "sentence_bad", "bad_sentence"),),
    "context": (("context",),),
    "context_good": (("context_good", "good_context"),),
    "context_bad": (("context_bad", "bad_context"),),
    "rating_good": (("rating_good", "good_rating"),),
    "rating_bad": (("rating_bad", "bad_rating"),),
    "label": (
        ("label",),
        ("grammaticality", "acceptability", "judgement", "judgment"),
        ("grammatical", "acceptable", "is_grammatical", "is_acceptable"),
    ),
    "rating": (("rating",), ("mean_rating", "rating_mean", "average_rating")),
    "a": (),
    "b": (),
    "better": (),
    "regions": (("regions",),),
    "tags": (("tags",),),
    "better_than": (("better_than",),),
    "contrast_tags": (("contrast_tags",),),
}  # fmt: skip

# Names of two columns that are pairs only together, the better sentence first.
_PAIR_NAMES = (
    ("sen", "wrong_sen"),
    ("grammatical_sentence", "ungrammatical_sentence"),
    ("acceptable_sentence", "unacceptable_sentence"),
    ("correct_sentence", "incorrect_sentence"),
    ("grammatical", "ungrammatical"),
    ("acceptable", "unacceptable"),
)

# Names of two sentences of which another column has to say which is the better one.
_CHOICE_NAMES = (
    ("sentence_a", "sentence_b"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("text_a", "text_b"),
    ("a", "b"), ("option_a", "option_b"),
)  # fmt: skip

# A label of 1 or TRUE below such a name says the contrary of what it says elsewhere.
_NEGATIVE_NAMES = frozenset({
    "ungrammatical", "unacceptable", "is_ungrammatical", "is_unacceptable", "ungrammaticality", "unacceptability",
    "violation", "bad", "incorrect", "wrong",
})  # fmt: skip

# Read only under these very names, since others who use the words mean other things by them.
_OWN_MEANINGS = ("regions", "tags", "better_than", "contrast_tags")

_FURTHER_BAD = re.compile(r"(?:sentence_)?bad(?:_sentence)?_?(\d+)")
BAD_MEANING = re.compile(r"bad_\d+")

MEANINGS = tuple(_NAMES)
"""What a column of a table may mean; ``bad_2``, ``bad_3``, … are further bad sentences beside ``bad``."""


def normalise_name(name: str) -> str:
    """Return the name of a column in the form in which names are compared.

    >>> normalise_name(" Good Sentence "), normalise_name("Grammatical?")
    ('good_sentence', 'grammatical')
    """
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


_USUAL_NAMES = frozenset(
    [name for groups in _NAMES.values() for group in groups for name in group]
    + [name for pair in (*_PAIR_NAMES, *_CHOICE_NAMES) for name in pair if len(name) > 1]
    + ["item", "paradigm", "phenomenon", "condition", "sentence_id"]
)  # fmt: skip


def is_usual_name(name: str) -> bool:
    """Tell whether a text is a usual name of a column, by which the header of a table is recognised."""
    return normalise_name(name) in _USUAL_NAMES


@dataclass(frozen=True)
class ColumnMatch:
    """The column of each meaning, by the name that it has in the table.

    Args:
        layout: "sentences" (one a row), "pairs" (a better and worse ones in a row), or "choices" (two sentences, and a
            column that says which is better).
        column_of: The columns that count in this layout.
        further_bad: The columns of further bad sentences.
    """

    layout: str
    column_of: Mapping[str, str]
    further_bad: tuple[str, ...] = ()


Cells = Callable[[str], Iterable[object]]
"""A function that returns the cells of a column."""


def match_columns(header: Sequence[str], named: Mapping[str, str], where: str, cells: Cells) -> ColumnMatch:
    """Return what the columns of a table mean.

    Args:
        header: The column names.
        named: Those that the user named, by meaning; "-" for none.
        where: The table, for errors.
        cells: The cells of a column, since a name alone may not say what is in it.
    """
    if not header:
        raise SuiteError(f"{where} is empty; expected rows with a column 'text', or 'good' and 'bad' for pairs")
    _check_named(header, named, where)
    if {"a", "b", "better"} & named.keys():
        return _match_choices(named)
    finder = _ColumnFinder(header, named, where, cells)
    pairs = finder.find_pairs()
    column_of = finder.find_others(is_pairs=bool(pairs)) | pairs
    _check_layout(column_of, finder)
    if not pairs:
        kept = {name: column for name, column in column_of.items() if not name.endswith(("good", "bad"))}
        return ColumnMatch("sentences", kept)
    # A column without a meaning in the layout, such as one of remarks that is called "label", is kept as a tag.
    finder.check_label_of_pairs()
    meanings = ("id", "good", "bad", "rating_good", "rating_bad", "context", "context_good", "context_bad")
    kept = {name: column for name, column in column_of.items() if name in meanings}
    return ColumnMatch("pairs", kept, finder.find_further_bad())


def _check_named(header: Sequence[str], named: Mapping[str, str], where: str) -> None:
    for meaning, column in named.items():
        if meaning not in MEANINGS and not BAD_MEANING.fullmatch(meaning):
            raise SuiteError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(MEANINGS)}")
        if column not in header and column != NO_COLUMN:
            raise SuiteError(
                f"{where} has no column {column!r}; it has {', '.join(header)}.{suggest_name(column, header)}"
            )


def _match_choices(named: Mapping[str, str]) -> ColumnMatch:
    missing = [meaning for meaning in ("a", "b", "better") if named.get(meaning, NO_COLUMN) == NO_COLUMN]
    if missing:
        raise SuiteError(
            f"columns a, b and better belong together, and {missing[0]!r} is not named: --columns a=NAME,b=NAME,"
            "better=NAME, where better says which of the two is the better one"
        )
    if others := [meaning for meaning in named if meaning in ("text", "good", "bad", "label")]:
        raise SuiteError(f"--columns names a, b and better, and {others[0]} of another layout too: omit {others[0]}")
    return ColumnMatch("choices", {meaning: column for meaning, column in named.items() if column != NO_COLUMN})


@dataclass(frozen=True)
class _ColumnFinder:
    """Looks for the columns of a table by their usual names."""

    header: Sequence[str]
    named: Mapping[str, str]
    where: str
    cells: Cells

    def find_pairs(self) -> dict[str, str]:
        """Return the columns of the better and the worse sentence; empty if the table has no pairs."""
        if self.named.get("text", NO_COLUMN) != NO_COLUMN and not {"good", "bad"} & self.named.keys():
            # One sentence after a good and after a bad context is a pair as well.
            return self._pair_contexts(self.named["text"])
        found = {meaning: column for meaning in ("good", "bad") if (column := self.find(meaning))}
        if len(found) == 2:
            return found
        for good, bad in () if found else _PAIR_NAMES:
            columns = [self._find_named(name) for name in (good, bad)]
            if all(columns) and not any(map(self._has_labels, columns)):
                return dict(zip(("good", "bad"), columns, strict=True))
        return self._pair_contexts(self.find("text"))

    def _pair_contexts(self, text: str) -> dict[str, str]:
        has_contexts = text and self.find("context_good") and self.find("context_bad")
        return {"good": text, "bad": text} if has_contexts else {}

    def find_others(self, *, is_pairs: bool) -> dict[str, str]:
        """Return the columns of all other meanings."""
        meanings = [meaning for meaning in MEANINGS if meaning not in ("good", "bad", "a", "b", "better")]
        # Columns that the user names decide the layout, even if the file has the columns of another one as well.
        skipped = {"text"} if {"good", "bad"} & self.named.keys() else set()
        skipped |= {"label", "rating"} if is_pairs else set()
        found = {meaning: self.find(meaning) for meaning in meanings if meaning not in skipped}
        if found.get("label") and found["label"] == found.get("rating"):
            raise SuiteError(f"{self.where}: the column {found['label']!r} cannot be both the label and the rating")
        if not is_pairs and not (found["label"] or found["rating"]):
            self._check_doubtful_labels()
        return {meaning: column for meaning, column in found.items() if column}

    def find(self, meaning: str) -> str:
        """Return the column of a meaning; empty if there is none."""
        if meaning in self.named:
            column = self.named[meaning]
            return "" if column == NO_COLUMN else column
        if meaning in _OWN_MEANINGS:
            return meaning if meaning in self.header else ""
        # A column that the user gave one meaning has no other.
        free = [column for column in self.header if column not in self.named.values()]
        # The package's own name wins: its tables have tags of any name beside it.
        if meaning in free and meaning != "text":
            return meaning
        for group in _NAMES[meaning]:
            matching = [column for column in free if normalise_name(column) in group]
            if meaning == "text" and len(matching) > 1:
                matching = [column for column in matching if self._has_sentences(column)] or matching
            if len(matching) > 1 and meaning != "id":
                raise SuiteError(
                    f"{self.where}: {' and '.join(map(repr, matching))} could both be the {_describe(meaning)}. Say "
                    f"which: --columns {meaning}={_quote(matching[0])}, or --columns {meaning}={_quote(matching[1])}"
                )
            if matching:
                return matching[0]
        return ""

    def _find_named(self, name: str) -> str:
        """Return the column with a usual name; empty if there is none."""
        return next((column for column in self.header if normalise_name(column) == name), "")

    def find_further_bad(self) -> tuple[str, ...]:
        """Return the columns of further bad sentences, in the order of their numbers."""
        named = [column for meaning, column in self.named.items() if BAD_MEANING.fullmatch(meaning)]
        if named or "bad" in self.named:
            return tuple(named)
        numbered = [
            (int(match[1]), column)
            for column in self.header
            if (match := _FURTHER_BAD.fullmatch(normalise_name(column))) and column not in self.named.values()
        ]
        return tuple(column for _, column in sorted(numbered))

    def check_label_of_pairs(self) -> None:
        """Raise an error for a table of pairs with a binary label, which may say which sentence is the better one."""
        if "label" in self.named:
            return
        free = [column for column in self.header if column not in self.named.values()]
        for column in free:
            if normalise_name(column) in (*_NAMES["label"][0], *_NAMES["label"][1]) and self._has_labels(column):
                raise SuiteError(
                    f"{self.where}: a table of pairs with a binary column {column!r}: does it say which sentence is "
                    f"the better one? If so: --columns a=FIRST,b=SECOND,better={_quote(column)}. If it is only a tag: "
                    f"--columns label={NO_COLUMN}"
                )

    def find_choice_names(self) -> tuple[str, str] | None:
        """Return two columns of sentences of which the header does not say which is better."""
        for names in _CHOICE_NAMES:
            first, second = map(self._find_named, names)
            if first and second:
                return first, second
        return None

    def _check_doubtful_labels(self) -> None:
        """Raise an error for a column of labels whose name says the contrary, or is that of a sentence."""
        for column in () if "label" in self.named else self.header:
            name = normalise_name(column)
            if name in _NEGATIVE_NAMES | {"good"} and self._has_labels(column):
                flipped = ' --labels "1=0,0=1"' if name in _NEGATIVE_NAMES else ""
                raise SuiteError(
                    f"{self.where}: the column {column!r} has labels. If 1 in it means "
                    f"{'un' if flipped else ''}acceptable: --columns label={_quote(column)}{flipped}. If it is no "
                    f"label: --columns label={NO_COLUMN}"
                )

    def _has_labels(self, column: str) -> bool:
        """Tell whether all cells of a column are words for labels."""
        keys = {read_label_key(cell) for cell in self.cells(column)} - {""}
        return bool(keys) and keys <= {*LABEL_WORDS, "2"}

    def _has_sentences(self, column: str) -> bool:
        """Tell whether some cells of a column are texts of several words, or in a script without spaces."""
        return any(isinstance(cell, str) and (" " in cell.strip() or (len(cell) > 4 and not cell.isascii()))
                   for cell in self.cells(column))  # fmt: skip


def _describe(meaning: str) -> str:
    return {"text": "sentence", "good": "good sentence", "bad": "bad sentence"}.get(meaning, meaning)


def _quote(column: str) -> str:
    return f"'{column}'" if re.search(r"[\s()]", column) else column


def _check_layout(column_of: Mapping[str, str], finder: _ColumnFinder) -> None:
    where, header = finder.where, finder.header
    is_pairs = {"good", "bad"} <= column_of.keys()
    is_same = is_pairs and column_of.get("text") in (column_of["good"], column_of["bad"])
    if "text" in column_of and is_pairs and not is_same:
        raise SuiteError(
            f"{where} has sentences ({column_of['text']}) and pairs ({column_of['good']}, {column_of['bad']}). "
            "Choose one: --columns text=NAME or --columns good=NAME,bad=NAME"
        )
    if "text" in column_of or is_pairs:
        return
    if choices := finder.find_choice_names():
        raise SuiteError(
            f"{where} has two sentences in a row ({choices[0]}, {choices[1]}); which one is better? If a column says "
            f"so: --columns a={_quote(choices[0])},b={_quote(choices[1])},better=NAME; if it is always the first: "
            f"--columns good={_quote(choices[0])},bad={_quote(choices[1])}"
        )
    members = {"good", "bad"} & {*map(normalise_name, header), *finder.named}
    missing = f"column {'bad' if members == {'good'} else 'good'!r}" if len(members) == 1 else "column of sentences"
    raise SuiteError(
        f"{where} has no {missing}; it has {', '.join(map(shorten, header))}. Name it 'text' (or 'good' and 'bad' for "
        "pairs), or give its name: --columns text=NAME, or --columns good=NAME,bad=NAME. Without a header, columns "
        "are numbered: --columns text=2,label=1"
    )


UNLABELLED = None
FIRST, SECOND = "a", "b"
EMPTY = "empty"
"""What stands for an empty cell in ``--labels``."""

LabelValue = int | str | None

# "?" is a doubtful sentence, which CoLA's rules and those of linguists' notation leave without a label.
LABEL_WORDS: dict[str, int | None] = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "good", "grammatical", "acceptable", "ok", "g", "✓", "✔"), 1),
    **dict.fromkeys(("0", "false", "f", "no", "n", "bad", "ungrammatical", "unacceptable", "*", "??", "*?", "?*"), 0),
    "?": UNLABELLED,
    "#": UNLABELLED,
}  # fmt: skip
"""What words in a column of labels mean, in lower case."""

_MARKS = frozenset({"*", "?", "??", "*?", "?*", "#", "✓", "✔"})
# What is true of a sentence only if one knows of what it is said.
_TRUTHS = frozenset({"0", "1", "true", "false", "t", "f", "yes", "no", "y", "n"})


def parse_labels(text: str) -> dict[str, LabelValue]:
    """Return the labels of words, as given in an option.

    >>> parse_labels("Grammatical=1,Ungrammatical=0,unclear=none")
    {'grammatical': 1, 'ungrammatical': 0, 'unclear': None}
    """
    pairs: dict[str, object] = {}
    for part in text.split(",") if text else []:
        word, equals, value = part.rpartition("=")
        if not (equals and word.strip()):
            raise SpecError(f"cannot read --labels {text!r}: write WORD=1,WORD=0")
        if word.strip() in pairs:
            raise SpecError(f"cannot read --labels {text!r}: {word.strip()} comes twice")
        pairs[word.strip()] = value.strip()
    return complete_labels(pairs)


def complete_labels(labels: Mapping[str, object]) -> dict[str, LabelValue]:
    """Return the labels of words with their keys in the form in which cells are compared."""
    values: dict[str, LabelValue] = {"1": 1, "0": 0, "none": UNLABELLED, "a": FIRST, "b": SECOND}
    completed: dict[str, LabelValue] = {}
    for word, value in labels.items():
        text = "none" if value is None else str(int(value)) if isinstance(value, bool) else str(value).casefold()
        if text not in values:
            raise SpecError(
                f"labels: {word!r} is {value!r}; expected 1 (acceptable), 0, or none for no label; in a column that "
                "says which of two sentences is better, a or b"
            )
        completed[read_label_key(word)] = values[text]
    return completed


def read_label_key(cell: object) -> str:
    """Return the cell of a label in the form in which labels are compared.

    >>> read_label_key(" TRUE "), read_label_key(True), read_label_key(1.0), read_label_key(None)
    ('true', 'true', '1', '')
    """
    if isinstance(cell, bool):
        return str(cell).casefold()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if cell is None else str(cell).strip().casefold()
    # A column of 1 and 0 with gaps is one of floats in pandas.
    return text[0] if re.fullmatch(r"[01]\.0+", text) else text


# What programs write for a missing value. As a label or a rating it may also be what a participant answered.
_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "missing", "-", "--", "–", "—")


@dataclass(frozen=True)
class LabelColumn:
    """What the cells of a column of labels mean.

    Args:
        column: Its name.
        values: The label of each word, and of the empty cell.
        remark: What the words were taken for, if they are not 1 and 0.
    """

    column: str
    values: Mapping[str, LabelValue]
    remark: str = ""

    def read(self, cell: object) -> int | None:
        """Return the label in a cell; raise an error for a word that has none."""
        # Most cells are written as the words are, and a million of them need not be compared in another form.
        key = cell if isinstance(cell, str) and cell in self.values else read_label_key(cell)
        if key not in self.values or not isinstance(cell, int | float | str | None):
            values = "none" if key in _MISSING_WORDS else "1,…=0"
            raise SuiteError(
                f"label is {cell!r}; expected 1 (acceptable) or 0. Leave it empty if there is no label, or say what "
                f'words mean: --labels "{shorten(str(cell).replace(",", " "))}={values}". If {self.column!r} is no '
                f"label: --columns label={NO_COLUMN}"
            )
        value = self.values[key]
        return value if isinstance(value, int) else None


def _list_distinct(cells: Iterable[object]) -> Iterable[object]:
    """Return each cell once, if cells can be compared: JSON may have lists among them."""
    listed = list(cells)
    try:
        return dict.fromkeys(listed)
    except TypeError:
        return listed


def read_label_column(
    column: str, cells: Iterable[object], labels: Mapping[str, LabelValue], where: str
) -> LabelColumn:
    """Return what the cells of a column of labels mean.

    Args:
        column: Its name.
        cells: Its cells.
        labels: The labels of words that the user gave.
        where: The table, for errors.
    """
    found = dict.fromkeys(map(read_label_key, _list_distinct(cells)))
    values: dict[str, LabelValue] = {**LABEL_WORDS, "": labels.get(EMPTY), **labels}
    place = f"{where}: the column {column!r}"
    if any(value in (FIRST, SECOND) for value in labels.values()):
        raise SuiteError(f"{place} has labels of single sentences: --labels WORD=1 or WORD=0; a and b are for pairs")
    words = [word for word in found if word]
    _check_ratings(place, column, [word for word in words if word not in values])
    if normalise_name(column) in _NEGATIVE_NAMES and (
        unsaid := [word for word in words if word in _TRUTHS - set(labels)]
    ):
        raise SuiteError(
            f'{place} is named for what is wrong, and has {unsaid[0]!r}: say what it means: --labels "1=0,0=1"'
        )
    if "" in found and words and _MARKS.issuperset(words) and EMPTY not in labels and not {"✓", "✔"} & set(words):
        raise SuiteError(
            f"{place} has marks ({', '.join(words)}) and empty cells. If empty means acceptable, say so: --labels "
            f'"{EMPTY}=1"; if it means no label: --labels "{EMPTY}=none"'
        )
    odd = {word: values[word] for word in words if word in values and word not in ("0", "1")}
    described = ", ".join(f"{word} = {'no label' if value is None else value}" for word, value in sorted(odd.items()))
    return LabelColumn(column, values, described)


def _check_ratings(place: str, column: str, words: Sequence[str]) -> None:
    """Raise an error for a column of labels that has other numbers, which may be ratings."""
    numbers = sorted(float(word) for word in words if re.fullmatch(r"[+-]?\d+(?:[.,]\d+)?", word) and "," not in word)
    if numbers and len(numbers) == len(words):
        raise SuiteError(
            f"{place} has the number {numbers[0]:g}{f' … {numbers[-1]:g}' if len(numbers) > 1 else ''}; labels are 1 "
            f"and 0. If these are ratings: --columns label={NO_COLUMN},rating={_quote(column)}; if they are labels, "
            f'say which: --labels "{numbers[0]:g}=0,…=1"'
        )


_CHOICE_WORDS = {"a": FIRST, "first": FIRST, "b": SECOND, "second": SECOND}


def read_choice_words(
    match: ColumnMatch, cells: Iterable[object], labels: Mapping[str, LabelValue], where: str
) -> Mapping[str, str]:
    """Return what the words in the column ``better`` mean: "a" or "b"."""
    column = match.column_of["better"]
    found = dict.fromkeys(map(read_label_key, cells))
    words: dict[str, str] = {**_CHOICE_WORDS, match.column_of["a"].casefold(): FIRST}
    words[match.column_of["b"].casefold()] = SECOND
    if {"1", "2"} <= found.keys() <= {"1", "2"}:
        words |= {"1": FIRST, "2": SECOND}
    given = {word: value for word, value in labels.items() if isinstance(value, str)}
    if len(given) < len(labels):
        raise SuiteError(f"{where}: the column {column!r} says which sentence is better: --labels WORD=a or WORD=b")
    words |= given
    unknown = [word for word in found if word not in words]
    if unknown:
        hint = '--labels "0=a,1=b" or --labels "1=a,0=b"' if {"0", "1"} & found.keys() else '--labels "…=a,…=b"'
        raise SuiteError(
            f"{where}: the column {column!r} has {unknown[0] or 'an empty cell'!r}: which sentence does it call the "
            f"better one, a ({match.column_of['a']}) or b ({match.column_of['b']})? Say so: {hint}"
        )
    return words
