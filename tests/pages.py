"""The blocks of code in README and docs: where they stand, what they are, and what their marks say.

A block is fenced, or indented by four spaces after an empty line. A comment just before it marks it:
``<!-- slow: REASON -->`` runs only with ``--slow``, ``<!-- not run: REASON -->`` never.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"```(\w*)(?: title=\"([^\"]+)\")?\s*\Z")
_MARK = re.compile(r"<!-- (slow|not run): (\S.*\S) -->\s*\Z")
_ITEM = re.compile(r"\s*([-*]|\d+\.) ")


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    Args:
        kind: What the fence says (python, console, sh, ...); sh for an indented one.
        title: The file that the block shows, if it names one.
        mark: "slow", "not run", or nothing.
        reason: What the mark gives as its reason.
    """

    page: Path
    line: int
    kind: str
    title: str
    mark: str
    reason: str
    body: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}, line {self.line}"


def name_of(page: Path) -> str:
    """The page as seen from the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, text: str = "") -> Iterator[Block]:
    """Every block of a page, in order."""
    lines = (text or page.read_text(encoding="utf-8")).splitlines()
    at, before, mark = 0, "", ("", "")
    while at < len(lines):
        line = lines[at]
        if line.startswith("```"):
            opening = _FENCE.match(line)
            assert opening, f"{name_of(page)}, line {at + 1}: cannot read the fence {line!r}"
            end = lines.index("```", at + 1)
            yield Block(page, at + 1, opening[1], opening[2] or "", *mark, "\n".join(lines[at + 1 : end]) + "\n")
            mark = ("", "")
        elif line.startswith("    ") and not lines[at - 1].strip() and not _ITEM.match(before):
            end = _indented_to(lines, at)
            yield Block(page, at + 1, "sh", "", *mark, "\n".join(each[4:] for each in lines[at : end + 1]) + "\n")
            mark = ("", "")
        else:
            end = at
            if line.strip():
                found = _MARK.match(line)
                mark = (found[1], found[2]) if found else ("", "")
                before = before if line.startswith(" ") and _ITEM.match(before) else line
        at = end + 1


def _indented_to(lines: list[str], at: int) -> int:
    while at + 1 < len(lines) and lines[at + 1].startswith("    "):
        at += 1
    return at


def of_kind(page: Path, *kinds: str) -> list[Block]:
    """The blocks of a page that are of some kinds."""
    return [block for block in blocks(page) if block.kind in kinds]


def commands(block: Block) -> list[list[str]]:
    """The commands of a shell block, each as its words."""
    lines = re.sub(r"\\\n\s*", "", block.body).splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def inline(page: Path) -> list[list[str]]:
    """The commands of ours that stand within the text of a page, each as its words."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(found) for found in re.findall(r"`(acceptability [^`]+)`", prose)]


def typed(block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of a console block, each with the lines that it prints."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        yield shlex.split(line), [each.rstrip() for each in expected.rstrip().splitlines()]
