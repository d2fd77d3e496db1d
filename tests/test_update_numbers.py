"""``make numbers`` finds every number at its source, and the pages hold what it finds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pages import PAGES, ROOT, name_of

NUMBERED = [page for page in PAGES if "<!-- number: " in page.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def numbers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_numbers", ROOT / "docs" / "update_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", NUMBERED, ids=name_of)
@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_numbers_within_the_text_are_those_of_their_sources(page: Path, slow: bool, numbers: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert numbers.update_inline_numbers(text, slow=slow) == text


def test_wrong_numbers_within_the_text_are_replaced(numbers: ModuleType) -> None:
    number = "<!-- number: card('trigram', 'BLiMP', 'all', '{:.1%}') -->"
    card = (ROOT / "src/acceptability/embedded/trigram/README.md").read_text(encoding="utf-8")
    assert "| all | 0.5395 |" in card
    assert numbers.update_inline_numbers(f"It has {number}99 %<!-- / --> right.", slow=False) == (
        f"It has {number}54.0%<!-- / --> right."
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("crad('trigram')", "no source 'crad'"),
        ("card('trigram', 'BLiMP', 'al')", "no row 'al'"),
        ("cell('docs/results/coverage.csv', 'no such row', 'coverage')", "no row 'no such row'"),
    ],
)
def test_an_unknown_source_stops(source: str, message: str, numbers: ModuleType) -> None:
    with pytest.raises(SystemExit, match=message):
        numbers.compute_number(source)


def test_results_of_commands_are_numbers_too(numbers: ModuleType) -> None:
    command = "evaluate starter --model uniform --measure PairAccuracy"
    text = f"<!-- number: result('{command}', 'n', '{{:d}}', model='uniform') -->5<!-- / -->"
    assert ">383<" in numbers.update_inline_numbers(text, slow=True)
    assert numbers.update_inline_numbers(text, slow=False) == text


def test_blocks_print_again(numbers: ModuleType) -> None:
    names: dict[str, object] = {}
    first = ">>> for i in range(2):\n...     print(i)\n7\n>>> x = 3\n>>> print('a', 'long line')\na ... line\n"
    assert numbers.update_python(first, names) == first.replace("7\n", "0\n1\n")
    assert numbers.update_python(">>> x + 1\n5\n", names) == ">>> x + 1\n4\n"
    with pytest.raises(SystemExit, match="NameError"):
        numbers.update_python(">>> unknown\n", {})
    block = "$ acceptability --version\nacceptability 9.9\n$ acceptability --version\n"
    assert numbers.update_console(block).splitlines()[1::2] == numbers.run_command(["acceptability", "--version"]) * 2


def test_a_page_is_brought_up_to_date(numbers: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "learn" / "page.md"
    page.parent.mkdir()
    parts = [
        '```csv title="a.csv"\ngood,bad\nA b.,A c.\n```',
        "```python\n>>> from pathlib import Path\n>>> len(Path('a.csv').read_text())\n0\n```",
        "<!-- not run: an example -->",
        "```python\n>>> 1 + 1\n3\n```",
        "<!-- slow: an example -->",
        "```python\n>>> 2 + 2\n5\n```",
    ]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    assert numbers.update_page(page, slow=False)
    text = page.read_text(encoding="utf-8")
    assert ("\n19\n" in text, "\n3\n" in text, "\n5\n" in text) == (True, True, True)
    assert not numbers.update_page(page, slow=False)
    assert numbers.update_page(page, slow=True)
    assert page.read_text(encoding="utf-8").count("\n4\n") == 1


def test_scripts_of_a_page_run_in_this_interpreter(
    numbers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # No python is on the path, as in a virtual environment that is not activated.
    monkeypatch.setenv("PATH", "")
    Path("make.py").write_text("import sys\nprint(sys.executable)\n", encoding="utf-8")
    assert numbers.run_command(["python", "make.py"]) == [sys.executable]
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        numbers.run_command(["python", "-c", "1 / 0"])
