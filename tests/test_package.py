"""The package as a whole: what importing it costs, which way imports point, and the rules of names and layout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lemminflect
import pytest
import typer

import acceptability
from acceptability import cli

SOURCE = Path(acceptability.__file__).parent

# A room imports from the lines above its own, never from its own line or below.
ROOM_ORDER = [
    {"errors"},
    {"display", "paths", "specs", "timings"},
    {"registry", "types"},
    {"outputs", "protocols", "text"},
    {"generate", "measures", "models", "reductions", "stats"},
    {"engine", "suites"},
    {"people", "store"},
    {"api"},
    {"probing", "train"},
    {"papers"},
    {"report"},
    {"serve"},
    {"cli"},
    {"__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(ROOM_ORDER) for room in rooms}

MAX_MODULES_PER_FOLDER = 14
LARGE_FOLDERS = {"cli", "suites/readers"}  # one file per command, one per format
SHARED_MODULE_NAMES = {"__init__", "model", "network", "recipe"}  # the same role in several rooms
MAX_PARTICIPLES = 0.02
MIN_COMMENT_LINES = 0.03


def list_modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def relative_name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def list_nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def list_imports(path: Path) -> list[tuple[str, str]]:
    """Every import of a module: the module that it names, and the name taken from it (empty for a whole module)."""
    return list(_iter_imports(path))


def _iter_imports(path: Path) -> Iterator[tuple[str, str]]:
    for node in list_nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{relative_name(path)}:{node.lineno}: a relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for module, name in list_imports(path):
        parts = [*module.split("."), name] if module == "acceptability" else module.split(".")
        if parts[0] == "acceptability" and len(parts) > 1 and not parts[1].startswith("__"):
            rooms.add(parts[1])
    return rooms


def is_past_form(name: str) -> bool:
    """Whether a name is a single word that is a past form of a verb and no base form: ``tried``, not ``read``."""
    word = name.strip("_")
    if not word.isalpha():
        return False
    verbs = lemminflect.getAllLemmas(word).get("VERB", ())
    return bool(verbs) and word not in verbs and any(word in _past_forms(verb) for verb in verbs)


def _past_forms(verb: str) -> tuple[str, ...]:
    forms = lemminflect.getAllInflections(verb, upos="VERB")
    return (*forms.get("VBD", ()), *forms.get("VBN", ()))


# --- what importing costs, what is public ---


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


# --- imports ---


def test_imports_point_one_way() -> None:
    wrong = []
    for path in list_modules():
        room = relative_name(path).split("/")[0].removesuffix(".py")
        others = [other for other in imported_rooms(path) if other != room and RANK[other] >= RANK[room]]
        wrong += [f"{relative_name(path)} imports {other}" for other in others]
    assert wrong == []


def test_the_picture_of_the_architecture_has_this_order() -> None:
    path = SOURCE.parents[1] / "docs" / "pictures" / "architecture.svg"
    below = path.read_text(encoding="utf-8").partition("Subpackages")[2]
    rows = defaultdict(set)
    for y, name in re.findall(r'class="name" x="[\d.]+" y="(\d+)">([a-z]+)<', below):
        rows[int(y)].add(name)
    assert [rows[y] for y in sorted(rows, reverse=True)] == ROOM_ORDER[:-1]


def test_only_models_and_training_import_torch() -> None:
    importers = {
        relative_name(path)
        for path in list_modules()
        for module, _ in list_imports(path)
        if module.split(".")[0] in ("torch", "transformers")
    }
    assert [name for name in importers if not name.startswith(("models/", "train/"))] == ["cli/doctor.py"]


def test_only_the_ray_engine_imports_ray() -> None:
    importers = {relative_name(path) for path in list_modules() for module, _ in list_imports(path) if module == "ray"}
    assert importers == {"engine/ray.py"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_private_names_stay_in_their_module() -> None:
    taken = [
        f"{relative_name(path)} takes {part} from {module}"
        for path in list_modules()
        for module, name in list_imports(path)
        for part in (*module.split("."), name)
        if module.startswith("acceptability") and is_private(part)
    ]
    assert taken == []


def iter_attributes(path: Path) -> Iterator[ast.Attribute]:
    return (node for node in list_nodes(path) if isinstance(node, ast.Attribute))


def test_private_attributes_of_modules_stay_in_their_module() -> None:
    wrong = []
    for path in list_modules():
        imports = list_imports(path)
        modules = {name or module.rsplit(".", 1)[-1] for module, name in imports if _is_our_module(module, name)}
        wrong += [
            f"{relative_name(path)}:{node.lineno}: {node.value.id}.{node.attr}"
            for node in iter_attributes(path)
            if isinstance(node.value, ast.Name) and node.value.id in modules and is_private(node.attr)
        ]
    assert wrong == []


def test_private_attributes_of_objects_stay_in_their_module() -> None:
    # Also those of a base class, or of a module that is imported under another name.
    everywhere, wrong = frozenset().union(*map(bound_private_names, list_modules())), []
    for path in list_modules():
        foreign = everywhere - bound_private_names(path)
        used = [(node.lineno, ast.unparse(node)) for node in iter_attributes(path) if node.attr in foreign]
        # torch has private operators, some with names that are ours too.
        wrong += [f"{relative_name(path)}:{line}: {code}" for line, code in used if not code.startswith("torch.")]
    assert wrong == []


@cache
def bound_private_names(path: Path) -> frozenset[str]:
    """The private names that a module binds: functions, classes, variables, attributes and arguments."""
    names = set()
    for node in list_nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(filter(is_private, names))


def _is_our_module(module: str, name: str) -> bool:
    if not module.startswith("acceptability"):
        return False
    folder = SOURCE.joinpath(*module.split(".")[1:], name)
    return folder.with_suffix(".py").exists() or (bool(name) and (folder / "__init__.py").exists())


def test_no_code_is_made_from_data() -> None:
    called = [
        f"{relative_name(path)}:{node.lineno}: {node.func.id}"
        for path in list_modules()
        for node in list_nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile")
    ]
    assert called == []


# Attributes that are looked up by a fixed name, since nobody here can declare them: of other libraries' objects, which
# have them or not by version and architecture, and of Python's own.
FOREIGN_ATTRIBUTES = {
    "engine/ray.py": {"cause"},  # errors of Ray
    "models/function_model.py": {"__module__", "__file__", "__version__"},  # whatever a user's function refers to
    "models/hf/causal_forward.py": {"flat_nodes", "is_causal", "layer_types", "sliding_window"},  # state of a thread,
    # modules of PyTorch and configurations of transformers
    "models/hf/in_memory.py": {"is_fast", "_name_or_path"},  # tokenizers and configurations of transformers
    "models/hf/loading.py": {"vocab_size", "max_position_embeddings"},  # configurations of transformers
    "models/hf/masked_forward.py": {"is_causal", "encoder", "layer", "attention", "output", "cells"},  # the same
    "models/hf/seq2seq.py": {"is_encoder_decoder", "decoder_start_token_id"},  # configurations of transformers
    "models/kernels/head.py": {"decoder", "states"},  # modules of PyTorch, and state of a thread
    "stats/mixed/ordinal/ordinal_regression.py": {"dtype"},  # a column of pandas, or a list
    "store/database.py": {"sqlite_errorcode"},  # errors of SQLite, some of which have no code
    "train/classifiers/finetuning_task.py": {"pooler", "pooler_activation"},  # networks of transformers
}


def test_optional_behaviour_is_declared_and_not_looked_up() -> None:
    found = defaultdict(set)
    for path in list_modules():
        for node in list_nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
                name = node.args[1]
                if isinstance(name, ast.Constant):
                    found[relative_name(path)].add(name.value)
    assert found == FOREIGN_ATTRIBUTES


# --- layout and names ---


def test_folders_stay_small() -> None:
    counts = Counter(path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    assert {folder for folder, count in counts.items() if count > MAX_MODULES_PER_FOLDER} <= LARGE_FOLDERS


def test_a_module_name_stands_for_one_module() -> None:
    # A command's file has the command's name, which may be that of the room behind it.
    command_files = {SOURCE / "cli" / f"{name}.py" for name in typer.main.get_command(cli.app).commands}
    folders = defaultdict(list)
    for path in list_modules():
        if path.stem not in SHARED_MODULE_NAMES and path not in command_files:
            folders[path.stem].append(relative_name(path))
    assert {stem: names for stem, names in folders.items() if len(names) > 1} == {}


def test_a_class_name_stands_for_one_class() -> None:
    owners = defaultdict(list)
    for path in list_modules():
        for node in list_nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].append(relative_name(path))
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def test_functions_are_not_named_by_a_bare_participle() -> None:
    assert is_past_form("tried")
    assert is_past_form("_taken")
    assert not is_past_form("read")
    assert not is_past_form("fit_logistic")
    functions = [
        node.name
        for path in list_modules()
        for node in list_nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    participles = [name for name in functions if is_past_form(name)]
    assert len(participles) < MAX_PARTICIPLES * len(functions), Counter(participles).most_common()


def test_comments_give_reasons_often_enough() -> None:
    lines = [line.strip() for path in list_modules() for line in path.read_text(encoding="utf-8").splitlines()]
    comments = sum(line.startswith("#") for line in lines)
    assert comments >= MIN_COMMENT_LINES * len(lines), f"{comments} of {len(lines)} lines"
