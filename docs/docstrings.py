"""Docstrings as Markdown: examples become blocks of code, and the descriptions of arguments a table.

mkdocstrings loads ``FenceExamples``, so that the pages about Python show examples as code too.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_SECTION = re.compile(r"(?:^|\n)(?:Args|Returns|Raises|Yields):\n(?:(?: {4}.*)?(?:\n|\Z))+")
_ARGUMENT = re.compile(r"^ {4}(\w+(?:, \w+)*): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def fence_examples(text: str) -> str:
    """Return a docstring with a fence around each example: Markdown takes ``>>>`` for a quotation of a quotation.

    >>> print(fence_examples("A sum.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").replace("`", "'"))
    A sum.
    <BLANKLINE>
    '''python
    >>> 1 + 1
    2
    '''
    <BLANKLINE>
    More.
    """
    lines: list[str] = []
    indent, inside, fenced = "", False, False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not inside and line.lstrip().startswith(">>> "):
            indent, inside = line[: len(line) - len(line.lstrip())], True
            lines.append(f"{indent}```python")
        elif inside and not line.strip():
            inside = False
            lines.append(f"{indent}```")
        lines.append(line)
    return "\n".join([*lines, f"{indent}```"] if inside else lines)


def describe(documented: Any) -> str:
    """Return the docstring of an object as Markdown, without the sections on arguments and results."""
    return fence_examples(_SECTION.sub("\n", inspect.getdoc(documented) or "")).strip()


def describe_arguments(documented: Any) -> dict[str, str]:
    """Return what a docstring says of each argument, which for a class may stand in a class that it extends."""
    found: dict[str, str] = {}
    for one in documented.__mro__ if inspect.isclass(documented) else (documented,):
        # Only what is written here: getdoc would give a class without a docstring that of its parent.
        doc = inspect.cleandoc(one.__doc__ or "")
        for names, text in _ARGUMENT.findall(doc.partition("Args:\n")[2]):
            for name in names.split(", "):
                found.setdefault(name, " ".join(text.split()))
    return found


class FenceExamples(griffe.Extension):
    """Puts fences around the examples of all docstrings that mkdocstrings renders."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object after it was read."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
