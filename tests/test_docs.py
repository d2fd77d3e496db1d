"""Every block of code in README and docs runs, or is checked, or says why not; everything that is there is documented.

What happens to a block:

- ``python`` is a doctest: it runs, and prints what it says;
- ``console`` runs, and prints what it says;
- ``sh``, and what is indented, is checked: its commands and options exist; on the pages of learn/ it runs too;
- on the pages of learn/, a block with a title is the file of that name, and all blocks run in order, in one folder;
- ``toml`` and ``json`` are read; ``text`` is no code;
- ``py``, ``bash`` and ``yaml`` are code of other packages, which ``test_peers.py`` checks;
- a command of ours within the text exists, and so do its options;
- ``<!-- slow: REASON -->`` before a block: it runs with ``--slow``; ``<!-- not run: REASON -->``: it is checked alone.
"""

from __future__ import annotations

import ast
import doctest
import functools
import html
import importlib.util
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

import acceptability
from acceptability import registry
from acceptability.cli import app
from acceptability.models import list_named_models
from acceptability.papers import study
from acceptability.suites import load_catalog
from pages import PAGES, ROOT, Block, blocks, commands, inline, name_of, of_kind, typed
from published import compute_published_cells
from shell import problem

TUTORIALS = sorted((ROOT / "docs" / "learn").glob("*.md"))
OTHERS = [page for page in PAGES if page not in TUTORIALS]
NOTEBOOKS = [Path("docs", "notebooks", f"{path.stem}.md") for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
READ = {"toml": tomllib.loads, "json": json.loads}
SHOWN = ("text", "csv", "tsv", "tex", "latex", "bibtex")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, but for the source: some commands are typed at the root of a clone."""
    (tmp_path / "src").symlink_to(ROOT / "src")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_blocks(pages: list[Path], *kinds: str, mark: str = "") -> list[Path]:
    return [page for page in pages if any(block.mark == mark for block in of_kind(page, *kinds))]


def needs_models(page: Path) -> None:
    if (
        "sphinx-trigram" in page.read_text(encoding="utf-8")
        and not list_named_models()["sphinx-trigram"].is_installed()
    ):
        pytest.skip("the page uses sphinx-trigram, and pocketsphinx is not installed")


def run_python(body: str, names: dict[str, Any], where: str) -> None:
    found = doctest.DocTestParser().get_doctest(body, names, where, where, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(found, out=report.write, clear_globs=False)
    names.update(found.globs)
    assert runner.tries > 0, f"{where}: no example"
    assert runner.failures == 0, report.getvalue()


def run_command(words: list[str], where: object) -> list[str]:
    """The lines that a command prints, run in this process."""
    program, *arguments = words
    if program == "python":
        subprocess.run([sys.executable, *arguments], check=True)
        return []
    assert program == "acceptability", f"{where}: {program} cannot be run here"
    # As when the output goes to a file: workers of xdist have a width in their environment.
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": None})
    assert done.exit_code == 0, f"{where}: {done.exception!r}\n{done.stderr}"
    return [line.rstrip() for line in done.stdout.rstrip().splitlines()]


@pytest.mark.parametrize("page", with_blocks(OTHERS, "python"), ids=name_of)
def test_python_blocks_print_what_they_say(page: Path, folder: Path) -> None:
    needs_models(page)
    run_python("\n".join(each.body for each in of_kind(page, "python") if not each.mark), {}, name_of(page))


@pytest.mark.parametrize("page", with_blocks(OTHERS, "console"), ids=name_of)
def test_console_blocks_print_what_they_say(page: Path, folder: Path) -> None:
    needs_models(page)
    for block in of_kind(page, "console"):
        for words, expected in [] if block.mark else typed(block):
            assert run_command(words, block) == expected


@pytest.mark.slow
@pytest.mark.parametrize("page", with_blocks(PAGES, "python", mark="slow"), ids=name_of)
def test_slow_python_blocks_print_what_they_say(page: Path, data: Path, folder: Path) -> None:
    run_python("\n".join(each.body for each in of_kind(page, "python") if each.mark == "slow"), {}, name_of(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", with_blocks(PAGES, "console", mark="slow"), ids=name_of)
def test_slow_console_blocks_print_what_they_say(page: Path, data: Path, folder: Path) -> None:
    for block in of_kind(page, "console"):
        for words, expected in typed(block) if block.mark == "slow" else []:
            assert run_command(words, block) == expected


def test_the_program_prints_what_the_readme_says(tmp_path: Path) -> None:
    """As a person types it, in a process of its own."""
    (block,) = of_kind(ROOT / "README.md", "console")
    words, expected = list(typed(block))[-1]
    command = [sys.executable, "-m", *words]
    here = {**os.environ, "PYTHONPATH": str(Path(acceptability.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == expected


@pytest.mark.parametrize("page", TUTORIALS, ids=name_of)
def test_tutorials_work_as_printed(page: Path, tmp_path: Path, monkeypatch) -> None:
    """All blocks of the page in order, in one empty folder, as a newcomer would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.body, encoding="utf-8")
        elif block.mark:
            continue
        elif block.kind == "python":
            run_python(block.body, names, str(block))
        elif block.kind == "console":
            for words, expected in typed(block):
                assert run_command(words, block) == expected
        elif block.kind == "sh":
            for words in commands(block):
                run_command(words, block)


@pytest.mark.parametrize("page", [page for page in PAGES if list(blocks(page))], ids=name_of)
def test_every_block_is_run_or_checked_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            assert ">>> " in block.body or parses(block), f"{block}: neither a doctest nor a file nor marked"
        elif block.kind == "console":
            assert list(typed(block)), f"{block}: a console block shows a command after $"
            assert not [wrong for words, _ in typed(block) if (wrong := problem(words))], block
        elif block.kind == "sh":
            ours = [words for words in commands(block) if not block.mark or words[0] == "acceptability"]
            assert not [wrong for words in ours if (wrong := problem(words))], block
        elif block.kind in READ:
            READ[block.kind](block.body)
        elif block.kind in ("py", "bash", "yaml"):
            assert page.name == "peers.md", f"{block}: code of another package stands on the page of peers alone"
        else:
            assert block.kind in SHOWN, f"{block}: what is {block.kind or 'a fence without a name'}?"


@pytest.mark.parametrize("page", [page for page in PAGES if inline(page)], ids=name_of)
def test_commands_within_the_text_exist(page: Path) -> None:
    """They need not be whole: an option that must be given may be missing."""
    wrong = [(" ".join(words), found) for words in inline(page) if (found := problem(words)) and "Missing" not in found]
    assert not wrong


def parses(block: Block) -> bool:
    """Whether a block that shows a file or is marked is Python, and what it imports is there."""
    imports = [node for node in ast.walk(ast.parse(block.body)) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        module = importlib.import_module(str(node.module))
        assert not [each.name for each in node.names if not hasattr(module, each.name)], block
    return bool(block.title) or block.mark == "not run"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("acceptability evaluate blimp --model causal:gpt2 --measure PairAccuracy", ""),
        ("acceptability evaluate blimp --modle causal:gpt2", "No such option"),
        ("acceptability evaluate blmip --model causal:gpt2", "there is no suite blmip"),
        ("acceptability evaluate blimp --model gpt2", ""),
        ("acceptability evaluate blimp --model trigam", "there is no model trigam"),
        ("acceptability evaluate blimp --model 'causal:gpt2(boss=None)'", "causal has no option boss"),
        ("acceptability evaluate blimp --model uniform --measure PairAcuracy", "no measure"),
        ("acceptability evaluate blimp --model uniform --measure 'ADC(gamma=1)'", "ADC has no option gamma"),
        ("acceptability evaluate blimp", "model"),
        ("acceptability valuate blimp", "acceptability has no command valuate"),
        ("acceptability train gtp --corpus a --out b", "no recipe"),
        ("make demmo", "the Makefile has no demmo"),
        ("pip install 'acceptability[neuronal]'", "there is no extra neuronal"),
        ("vllm serve gpt2", "mark the block"),
    ],
)
def test_a_wrong_command_is_found(line: str, said: str) -> None:
    (words,) = commands(Block(ROOT, 1, "sh", "", "", "", line))
    found = problem(words)
    assert said in found
    assert bool(said) == bool(found)


def test_blocks_and_their_marks_are_found() -> None:
    page = ROOT / "docs" / "page.md"
    parts = (
        "<!-- not run: needs a GPU -->",
        "    make a\n    make b",
        "- an item",
        "    more of it",
        '```csv title="a.csv"\nx\n```',
    )
    text = "\n\n".join(parts)
    found = list(blocks(page, text))
    assert [(each.kind, each.title, each.mark, each.reason) for each in found] == [
        ("sh", "", "not run", "needs a GPU"),
        ("csv", "a.csv", "", ""),
    ]
    assert commands(found[0]) == [["make", "a"], ["make", "b"]]


def shown_in_the_gallery(heading: str) -> list[list[str]]:
    """The rows of the table below a heading of the gallery."""
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    return [row for row in rows[2:] if re.search(r"\d", "".join(row[1:]))]


def test_the_gallery_shows_what_the_study_of_adc_gives(data: Path) -> None:
    cells = [cell for cell in compute_published_cells("adc") if cell.table == "Table 1"]
    shown = {
        row[0]: [f"0{number}" for number in row[1:]]
        for row in shown_in_the_gallery("The Acceptability Delta Criterion")
    }
    for name, numbers in shown.items():
        found = [(cell.paper, f"{cell.ours:.4f}") for cell in cells if cell.row == name]
        assert numbers == [number for pair in found for number in pair]
    assert len(cells) == 4 * len(shown)


@pytest.mark.slow
def test_the_gallery_shows_what_the_study_of_niu_and_penn_gives(data: Path) -> None:
    cells = [cell for cell in study("niu-penn") if cell.paper and isinstance(cell.ours, float | int)]
    for name, paper, ours, agrees in shown_in_the_gallery("Grammaticality and language modelling"):
        table, decimals = name.partition(":")[0], len(ours.partition("%")[0].strip().partition(".")[2])
        found = [cell for cell in cells if (cell.table, cell.paper) == (table, paper)]
        same = [cell for cell in found if f"{cell.ours:.{decimals}f}" == ours.rstrip(" %")]
        assert agrees in {"yes" if cell.agrees else "no" for cell in same}, name


@pytest.mark.slow
def test_the_gallery_shows_what_the_study_of_park_gives(data: Path) -> None:
    cells = [cell for cell in study("park", ["mini-masked"]) if cell.table == "Table 2"]
    ours = {cell.row: str(cell.ours) for cell in cells if cell.column == "correct"}
    for _, base, base_ours, large, large_ours, mine in shown_in_the_gallery("Contrasting minimal pairs"):
        for model, paper, computed in (("base", base, base_ours), ("large", large, large_ours)):
            printed = [cell for cell in cells if (cell.column, cell.paper) == (f"{model} BERT correct %", paper)]
            assert computed in {f"{cell.ours:.2f}" for cell in printed}
        assert mine.partition("(")[2].rstrip(")") in ours.values()


@pytest.mark.slow
def test_the_page_on_normalisation_shows_what_its_command_gives(folder: Path) -> None:
    page = ROOT / "docs" / "why" / "normalisation.md"
    (words,) = commands(of_kind(page, "sh")[0])
    results = json.loads("\n".join(run_command([*words, "--json"], page)))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text(encoding="utf-8").splitlines()]
    shown = {row[0]: row[1:] for row in rows if row and row[0].startswith("mini-")}
    for name, numbers in shown.items():
        model, _, question = name.partition(", ")
        measure = {"pair accuracy": "PairAccuracy(ties=0.5)", "AUC": "AUC()"}[question]
        found = [each["value"] for each in results if (each["model"], each["measure"]) == (model, measure)]
        assert numbers == [f"{value:.3f}".lstrip("0") for value in found]
    assert len(shown) == 4


def test_every_page_is_in_the_navigation(reference: dict[str, str]) -> None:
    def pages(part: Any) -> list[str]:
        if isinstance(part, str):
            return [part]
        return [page for each in (part.values() if isinstance(part, dict) else part) for page in pages(each)]

    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    written = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    generated = [f"reference/{name}.md" for name in reference] + [
        page.relative_to("docs").as_posix() for page in NOTEBOOKS
    ]
    assert sorted(listed) == sorted([*written, *generated])


@pytest.fixture(scope="module")
def generator() -> Any:
    """The module that generates the reference pages; it stands beside the pages."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference(generator: Any) -> dict[str, str]:
    return {name: page() for name, page in generator.PAGES.items()}


REGISTERED = (("measure", "measures"), ("reduction", "reductions"), ("model", "models"), ("recipe", "recipes"))


def sections(page: str) -> dict[str, str]:
    """The sections of a generated page, by their headings."""
    parts = re.split(r"^## `(.+?)`.*$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


TROUBLESHOOTING = ROOT / "docs" / "howto" / "troubleshooting.md"
MESSAGES = re.findall(
    r"<!-- message of: (.+?) -->\n```text\n(.+?)\n```", TROUBLESHOOTING.read_text(encoding="utf-8"), re.DOTALL
)


def test_messages_of_errors_are_found() -> None:
    assert len(MESSAGES) >= 12


@pytest.mark.parametrize(("command", "shown"), MESSAGES, ids=[command for command, _ in MESSAGES])
def test_a_command_fails_with_the_message_that_is_shown(command: str, shown: str, folder: Path) -> None:
    (folder / "columns.csv").write_text("gut,schlecht\nThe dogs bark.,The dogs barks.\n", encoding="utf-8")
    (folder / "empty.csv").write_text("good,bad\nThe dogs bark.,\n", encoding="utf-8")
    (folder / "scores.csv").write_text("sentence_id,score\n1,2\n", encoding="utf-8")
    error = CliRunner().invoke(app, shlex.split(command)[1:]).exception
    assert isinstance(error, acceptability.AcceptabilityError)
    assert re.fullmatch(".*".join(map(re.escape, shown.split("…"))), str(error)), f"{error} is not {shown}"


@pytest.mark.parametrize(("kind", "page"), REGISTERED)
def test_everything_registered_is_documented(kind: str, page: str, reference: dict[str, str], generator: Any) -> None:
    found = sections(reference[page])
    assert list(found) == list(registry.names(kind))
    for name, section in found.items():
        assert len(section.strip().partition("\n\n")[0]) > 20, f"{kind} {name} has no description"
        assert "```sh\nacceptability " in section, f"{kind} {name} has no example in docs/reference.toml"
        for option in inspect.signature(registry.find(kind, name)).parameters:
            row = section.partition(f'id="{generator._to_anchor(f"{name}-{option}")}"')[2].partition("</tr>")[0]
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
            assert option == "location" or (len(cells) == 4 and all(cells)), f"{kind} {name}: {option} lacks something"


def test_every_command_and_option_is_documented(reference: dict[str, str], generator: Any) -> None:
    root = typer.main.get_command(app)
    found = {path: text for page in reference.values() for path, text in sections(page).items()}
    for path, command in (each for group in generator.group_commands().values() for each in group):
        assert command.help or path == "acceptability suites", path
        assert "```sh\nacceptability " in found[path], f"{path} has no example"
        rows = re.findall(r"<tr id=[^>]*>(.*?)</tr>", found[path])
        assert len(rows) == len([option for option in command.params if option.name != "help"]), path
    assert {path.split()[1] for path in found if path.startswith("acceptability ")} == set(root.list_commands(None))


def test_every_suite_and_named_model_is_documented(reference: dict[str, str]) -> None:
    for entry in load_catalog():
        row = reference["suites"].partition(f"<code>{entry.id}</code>")[2].partition("</tr>")[0]
        assert f"{entry.sentences:,}" in row, entry.id
        assert html.escape(entry.licence, quote=False) in row, entry.id
    for name in list_named_models():
        assert f"<code>{name}</code>" in reference["models"]


def test_every_example_of_the_reference_could_be_typed(generator: Any) -> None:
    facts = generator.load_facts()
    examples = {
        (kind, name): text for kind in facts.keys() - {"options", "python"} for name, text in facts[kind].items()
    }
    assert not {each: wrong for each, text in examples.items() if (wrong := problem(shlex.split(text)))}


def test_examples_of_docstrings_are_code(generator: Any, reference: dict[str, str]) -> None:
    fence = sys.modules[generator.describe.__module__].fence_examples
    assert fence("A.\n\n>>> 1\n1\n\nB.") == "A.\n\n```python\n>>> 1\n1\n```\n\nB."
    assert fence("    >>> 1\n    1") == "    ```python\n    >>> 1\n    1\n    ```"
    assert fence("```python\n>>> 1\n```") == "```python\n>>> 1\n```"
    for name, page in reference.items():
        outside = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
        assert ">>> " not in outside, name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def test_the_page_of_suites_lists_them_with_their_counts() -> None:
    page = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    listed = set()
    for names, sentences, contrasts, _ in rows:
        named = re.findall(r"`([^`]+)`", names)
        found = [
            entry
            for entry in load_catalog()
            if any(entry.id.startswith(name[:-1]) if name.endswith("/…") else entry.id == name for name in named)
        ]
        listed |= {entry.id for entry in found}
        assert int(sentences.replace(",", "")) == sum(entry.sentences for entry in found), names
        assert int(contrasts.replace(",", "") or 0) == sum(entry.contrasts for entry in found), names
    assert listed == {entry.id for entry in load_catalog()}


def list_techniques() -> list[tuple[str, str, str]]:
    """The rows of the index of techniques: the term in bold, the file, the function or class."""
    page = (ROOT / "docs" / "reference" / "techniques.md").read_text(encoding="utf-8")
    return re.findall(r"^\| \*\*(.+?)\*\*.* \| `(.+?)` \| `(.+?)` \|$", page, re.MULTILINE)


def test_the_index_of_techniques_is_long_enough() -> None:
    page = (ROOT / "docs" / "reference" / "techniques.md").read_text(encoding="utf-8")
    assert len(list_techniques()) == page.count("\n| **") >= 40


@functools.cache
def read_definitions(file: str) -> tuple[str, frozenset[str]]:
    """The text of a file of the package, with its spaces and hyphens as one space, and what it defines."""
    source = (Path(acceptability.__file__).parent / file).read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(source))
    return fold(source), frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))


def fold(text: str) -> str:
    return re.sub(r"[\s_/–-]+", " ", text).lower()


@pytest.mark.parametrize(("term", "file", "name"), list_techniques())
def test_a_technique_is_where_the_index_says(term: str, file: str, name: str) -> None:
    source, defined = read_definitions(file)
    # A whole word, or its plural: "em" is in "them" too.
    assert re.search(rf"(?<![a-z0-9]){re.escape(fold(term))}s?(?![a-z0-9])", source), f"{file} does not name {term}"
    assert name in defined


def test_links_between_pages_lead_somewhere(reference: dict[str, str]) -> None:
    generated = {(ROOT / "docs" / "reference" / f"{name}.md").resolve() for name in reference}
    generated |= {(ROOT / page).resolve() for page in NOTEBOOKS}
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" in link:
                continue
            target = (page.parent / link).resolve()
            assert target.exists() or target in generated, f"{page.name} links to {link}"


def test_no_machine_path_is_in_the_tree() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    pattern = re.compile(rb"(^|[^\w.])/(work|farm|root)/")
    contents = {name: (ROOT / name.decode()).read_bytes() for name in files if name}
    # The expression is slow on large files, most of which have none of the three words.
    parts = [f"/{part}/".encode() for part in ("work", "farm", "root")]
    wrong = [name for name, text in contents.items() if any(map(text.__contains__, parts)) and pattern.search(text)]
    assert wrong == []
