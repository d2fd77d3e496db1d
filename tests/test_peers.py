"""The page that puts code of ours beside that of other packages: its blocks, and the lengths that it claims.

Ours run in ``test_docs.py``. Theirs are parsed here; their packages are not installed.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import io
import re
import shlex
import tokenize
from dataclasses import dataclass, field

import pytest
import yaml

from pages import ROOT, Block, blocks, commands, typed

PAGE = ROOT / "docs" / "why" / "peers.md"
PACKAGES = ("acceptability", "minicons", "lm-evaluation-harness")
# The options of `lm_eval run`, 0.4.13, that the page uses.
LM_EVAL_OPTIONS = {"--model", "--model_args", "--tasks", "--include_path"}


@dataclass
class Job:
    """A section of the page: its title, and the blocks or the words that stand below each package's name."""

    title: str
    code: dict[str, list[Block]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def length(self, package: str) -> int | None:
        return sum(map(count_characters, self.code[package])) if self.code[package] else None


def count_characters(block: Block) -> int:
    """The characters of code, other than white space: no comments, no prompts, nothing that is printed."""
    if block.kind == "python":
        code = "".join(each.source for each in doctest.DocTestParser().get_examples(block.body))
        return count_python(code)
    if block.kind == "py":
        return count_python(block.body)
    if block.kind == "console":
        return sum(len("".join(shlex.join(words).split())) for words, _ in typed(block))
    lines = [line.removesuffix("\\") for line in block.body.splitlines() if not line.lstrip().startswith("#")]
    return len("".join("".join(lines).split()))


def count_python(code: str) -> int:
    found = tokenize.generate_tokens(io.StringIO(code).readline)
    return sum(len("".join(each.string.split())) for each in found if each.type != tokenize.COMMENT)


def read_jobs() -> list[Job]:
    text = PAGE.read_text(encoding="utf-8")
    lines = text.splitlines()
    jobs: list[Job] = []
    found = {block.line: block for block in blocks(PAGE)}
    package = ""
    for number, line in enumerate(lines, start=1):
        if heading := re.fullmatch(r"## (\d+\. .+)", line):
            jobs.append(Job(heading[1], {each: [] for each in PACKAGES}, dict.fromkeys(PACKAGES, "")))
            package = ""
        elif line.startswith("## "):
            package = ""
        elif jobs and (name := re.fullmatch(r"\*\*(.+)\*\*", line)) and name[1] in PACKAGES:
            package = name[1]
        elif package and number in found:
            jobs[-1].code[package].append(found[number])
        elif package and line.startswith("Not offered"):
            jobs[-1].said[package] = line
    return jobs


JOBS = read_jobs()


def test_there_are_25_jobs_numbered_in_order() -> None:
    assert [int(job.title.partition(".")[0]) for job in JOBS] == list(range(1, 26))


def test_every_package_has_code_or_says_that_it_has_not() -> None:
    for job in JOBS:
        assert job.code["acceptability"], job.title
        for package in PACKAGES:
            assert bool(job.code[package]) != bool(job.said[package]), f"{job.title}: {package}"


def test_ours_is_never_longer_and_usually_shorter() -> None:
    shorter = 0
    for job in JOBS:
        ours = job.length("acceptability")
        theirs = [length for package in PACKAGES[1:] if (length := job.length(package)) is not None]
        assert ours is not None
        assert all(ours <= length for length in theirs), f"{job.title}: {ours} and {theirs}"
        # A job that nobody else does is no comparison, and does not count.
        shorter += bool(theirs) and all(ours < length for length in theirs)
    assert shorter >= 15
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"shorter in {shorter} of the {sum(map(is_compared, JOBS))}" in text


def is_compared(job: Job) -> bool:
    return any(job.length(package) is not None for package in PACKAGES[1:])


def format_row(job: Job) -> str:
    number, _, title = job.title.partition(". ")
    anchor = re.sub(r"[^\w\s-]", "", job.title.lower()).replace(" ", "-")
    cells = ["–" if (length := job.length(package)) is None else str(length) for package in PACKAGES]
    return f"| [{number}. {title}](#{anchor}) | {' | '.join(cells)} |"


def test_the_table_has_the_lengths_of_the_blocks() -> None:
    shown = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    assert shown == [format_row(job) for job in JOBS]


def test_every_function_and_method_of_theirs_is_imported_or_defined() -> None:
    """Names in a block come from its own imports and assignments, so that no line that is needed goes uncounted."""
    given = {"network", "tokenizer", *dir(builtins)}
    for job in JOBS:
        for block in (block for package in PACKAGES[1:] for block in job.code[package] if block.kind == "py"):
            tree = ast.parse(block.body)
            bound = {
                node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
            bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
            bound |= {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
            read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert read <= bound | given, f"{block}: {read - bound - given}"


def test_commands_and_tasks_of_theirs_can_be_read() -> None:
    others = [block for job in JOBS for package in PACKAGES[1:] for block in job.code[package]]
    assert {block.kind for block in others} == {"py", "bash", "yaml"}
    for block in others:
        if block.kind == "yaml":
            assert yaml.safe_load(block.body)["doc_to_choice"] == "{{[good, bad]}}"
        elif block.kind == "bash":
            for program, *words in commands(block):
                assert program == "lm_eval"
                assert {word for word in words if word.startswith("--")} <= LM_EVAL_OPTIONS


@pytest.mark.parametrize(
    ("kind", "body", "length"),
    [
        ("python", ">>> a = 1  # one\n>>> a + 1\n2\n", 6),
        ("py", '# a comment\nx = "a b"\n', 6),
        ("console", "$ acceptability models\na b c\n", 19),
        ("bash", "# no code\nlm_eval \\\n  --tasks blimp\n", 19),
        ("yaml", "task: pairs\n", 10),
    ],
)
def test_characters_of_code_are_counted(kind: str, body: str, length: int) -> None:
    assert count_characters(Block(PAGE, 1, kind, "", "", "", body)) == length
