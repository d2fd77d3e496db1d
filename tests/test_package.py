"""The package as a whole: what importing it costs, what it promises, which way imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import acceptability

SOURCE = Path(acceptability.__file__).parent

RANKS = [
    {"errors"},
    {"spelling", "signature", "home", "text", "formulas"},
    {"registry"},
    {"types"},
    {"protocols"},
    {"request", "words", "regions", "suites", "generate", "models", "unigrams", "measures", "stats"},
    {"reductions", "people"},
    {"store", "engine", "linking"},
    {"scoring", "review"},
    {"measuring", "differing", "precision", "calibrating", "submitting", "probing"},
    {"comparing", "contrasts", "correlating", "train"},
    {"methods"},
    {"studies"},
    {"report"},
    {"serve"},
    {"cli"},
    {"__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}


def test_importing_loads_neither_torch_nor_pandas() -> None:
    code = "import sys, acceptability; print({'torch', 'pandas', 'transformers', 'ray'} & set(sys.modules) or 'none')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "none"


def test_every_public_name_is_there() -> None:
    for name in acceptability.__all__:
        assert getattr(acceptability, name) is not None
    wanted = (
        "load_suite load_model score evaluate compare judge Suite Sentence Contrast Query TokenScores Scores Result"
    )
    assert set(wanted.split()) <= set(acceptability.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = acceptability.nothing


def _modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def _imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named = [
        f"acceptability.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "acceptability"
        for alias in node.names
    ]
    return found + named


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "acceptability" or len(parts) == 1 or parts[1].startswith("__"):
            continue
        other = parts[1]
        assert other == room or RANK[other] < RANK[room], f"{room} imports {other}"


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_models_import_torch(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    heavy = {name.split(".")[0] for name in _imports(path)} & {"torch", "transformers"}
    assert not heavy or room in ("models", "train") or path.name == "doctor.py"


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_cluster_engine_imports_ray(path: Path) -> None:
    imports = {name.split(".")[0] for name in _imports(path)}
    assert ("ray" in imports) == (path == SOURCE / "engine" / "cluster.py")


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_code_is_made_from_data(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"eval", "exec", "compile"}
