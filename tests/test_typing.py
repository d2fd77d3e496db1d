"""The public names and their types, as a type checker sees them in a program of a user's."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import acceptability
from pages import ROOT

SCRIPT = Path(__file__).with_name("user_script.py")


def test_the_script_uses_every_public_name() -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ac"
    }
    assert used == set(acceptability.__all__)


def test_dir_shows_public_names_only() -> None:
    code = "import acceptability; print(*dir(acceptability))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert shown.stdout.split() == sorted([*acceptability.__all__, "__version__"])


def test_types_for_checkers_and_objects_at_runtime_are_the_same() -> None:
    """The imports under TYPE_CHECKING, which nothing runs, name the objects that __getattr__ returns."""
    tree = ast.parse(Path(acceptability.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = set()
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            name = alias.asname or alias.name
            names.add(name)
            module = __import__(str(statement.module), fromlist=[alias.name])
            # The package ``train`` is called like the function, and calls it.
            if name != "train":
                assert getattr(acceptability, name) is getattr(module, alias.name), name
    assert names == set(acceptability.__all__)


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    code = "import sys, acceptability; print([name for name in sys.modules if name.startswith('acceptability.')])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_users_script_passes_the_strict_type_checker(tmp_path: Path) -> None:
    """Minutes without a cache, since it reads the whole package."""
    pytest.importorskip("mypy")
    # Neither this project's settings nor its stubs: those of a user who has installed the package.
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "mypy.ini",
        "--follow-imports=silent",
        "script.py",
    ]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr
