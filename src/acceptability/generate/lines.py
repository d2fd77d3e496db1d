"""In which line of a TOML file a key stands: the standard reader does not say."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PIECE = re.compile(r""""[^"]*"|'[^']*'|[\w-]+""")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')
_LONG = re.compile(r'"""|\'\'\'')

Path = tuple[str | int, ...]


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the line of every table and key, by its path; a table of an array is known by its place.

    >>> found = key_lines('[[paradigm]]\\nname = "a"\\n[paradigm.slots]\\nn = "noun"\\n')
    >>> found[("paradigm", 0, "slots", "n")]
    4
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    depth, long = 0, ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if long or depth:
            long, depth = _inside(line, long, depth)
            continue
        header = _HEADER.fullmatch(line)
        if header:
            table = _table(_pieces(header[2]), header[1] == "[[", counts)
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault((*table, *_pieces(key[1])), number)
            long, depth = _inside(line[key.end() :], "", 0)
    return found


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of a key, or of the nearest table that it would belong to."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _pieces(name: str) -> Path:
    return tuple(each.strip("\"'") for each in _PIECE.findall(name))


def _table(names: Path, is_array: bool, counts: dict[Path, int]) -> Path:
    """Return the path of a table, with the places of the arrays that it lies in."""
    path: Path = ()
    for place, name in enumerate(names):
        path = (*path, name)
        if is_array and place == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _inside(line: str, long: str, depth: int) -> tuple[str, int]:
    """Return which long string, and how many brackets, are still open after a line."""
    while True:
        if long:
            _, mark, line = line.partition(long)
            if not mark:
                return long, depth
            long = ""
        found = _LONG.search(line)
        before = line[: found.start()] if found else line
        plain = _STRING.sub("", before)
        depth += sum(plain.count(mark) for mark in "[{") - sum(plain.count(mark) for mark in "]}")
        if not found:
            return "", depth
        long, line = found[0], line[found.end() :]
