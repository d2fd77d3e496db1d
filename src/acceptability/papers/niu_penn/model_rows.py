"""Rows of Niu and Penn (2020) that a user's model can fill: those of GPT-2, and of models trained by our recipes.

GPT-2 is the one model of the paper that is public. The models of Pereira and Mikolov and the QRNNs are not published. A
model of the same kind that was trained by our recipe takes their row, as its ``recipe.json`` describes it: in the
column of the BNC if it was trained in lower case, as the paper's are on that text, and in the column of WikiText-103 if
not. The training text is a different one, of a different size, so that these numbers are compared with nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from acceptability.errors import ModelError, SpecError
from acceptability.papers.cells import Cell, CellKey, PublishedValues, make_uncompared_cell
from acceptability.papers.niu_penn.sense import SENSE_COLUMN
from acceptability.specs import format_spec, parse_model_spec
from acceptability.train.recipe import RECIPE_FILE, update_metadata

PAPER_NAMES = {"gpt2": "GPT-2", "gpt2-xl": "GPT-2 XL"}
"""The paper's names of the public models, by the last part of the checkpoint's path or name."""

CHECKPOINTS = {name: checkpoint for checkpoint, name in PAPER_NAMES.items()}

WORDFREQ_SLOR = "slor(unigrams='wordfreq:en')"
# Training writes it beside the weights.
_UNIGRAMS_FILE = "unigrams.tsv"

NOT_COMPUTED = "not computed"
_RECIPES = {
    "Pereira": "aggregate-markov",
    "Mikolov": "rnn",
    "QRNN regular": "qrnn with another output than tas_double",
    "QRNN TAS": "qrnn with output=tas_double",
}
# Tables 1 and 6 abbreviate the names of Table 2 in ways of their own.
_IN_TABLE_1 = {"QRNN (regular)": "QRNN regular", "QRNN (TAS)": "QRNN TAS"}
_IN_TABLE_6 = {"QRNN-R": "QRNN regular", "QRNN": "QRNN TAS"}
_QRNN_R_NOTE = "the paper does not say what QRNN-R is: it is taken for the regular QRNN, and QRNN for the one with TAS"
_TEXTS = {"BNC": "BNC, about 100 million words", "WT103": "WikiText-103, about 103 million words"}
_CASES = {"BNC": "lower-cased", "WT103": "cased"}


def match_gpt2_models(models: Sequence[str]) -> dict[str, str]:
    """Return the user's models that the paper has as well, by their name in the paper.

    >>> match_gpt2_models(["uniform", "causal:openai-community/gpt2(bos=None)"])
    {'GPT-2': 'causal:openai-community/gpt2(bos=None)'}
    """
    # "@" separates a revision, which does not change which model it is.
    checkpoint_names = {model: PurePath(parse_model_spec(model)[1].partition("@")[0]).name for model in models}
    return {PAPER_NAMES[name]: model for model, name in checkpoint_names.items() if name in PAPER_NAMES}


def find_gpt2_name(key: CellKey) -> str | None:
    """Return the GPT-2 model that a cell of the paper is about; None if it is about another model.

    >>> find_gpt2_name(("Table 2", "GPT-2 models, Raw", "GPT-2 XL LOG"))
    'GPT-2 XL'
    >>> find_gpt2_name(("Table 4", "GPT-2, Raw LOG", "median"))
    'GPT-2'
    """
    _, row, column = key
    # Table 2 has both sizes in one row and names them in the columns; the other tables have a row for each.
    name = column.rpartition(" ")[0] if row.startswith("GPT-2 models") else row.partition(",")[0]
    return name if name in PAPER_NAMES.values() else None


def find_user_cell(key: CellKey, model: str, cells_by_key: Mapping[CellKey, Cell]) -> Cell | None:
    """Return the cell of a user's GPT-2 that corresponds to a cell of the paper; None if it is on other sentences.

    Args:
        key: The cell of the paper.
        model: The user's model.
        cells_by_key: The cells of the user's models.
    """
    # Tables 1, 4 and 6 are of texts, groups and strings that are not published: there is nothing to compare there.
    table, row, column = key
    norm = row.rpartition(", ")[2]
    if table in ("Table 2", "Table 3"):
        return cells_by_key.get((table, f"{model}, {norm}", column.rpartition(" ")[2]))
    return cells_by_key.get((table, f"{model}, {norm}", column)) if table == "Table 5" else None


@dataclass(frozen=True)
class RecipeMetadata:
    """The ``recipe.json`` of a model that ``acceptability`` trained.

    Args:
        kind: The recipe, such as ``rnn``.
        files: The names of the files of the training text.
        word_count: The number of words of the training text, as spaces separate them.
        corpus_sha256: The SHA-256 of the training text.
        options: The options of the recipe.
    """

    kind: str
    files: tuple[str, ...]
    word_count: int
    corpus_sha256: str
    options: Mapping[str, Any]


def choose_slor(model: str) -> tuple[str, str]:
    """Return the spec of SLOR for a model, with the model's own unigrams if it has any, and a note on them."""
    # The paper subtracts unigram log-probabilities of the training corpus. A model trained by our recipes has those in
    # its folder; for any other model the frequencies of wordfreq must do.
    folder = _find_folder(model)
    if folder is None or not (folder / _UNIGRAMS_FILE).is_file():
        return WORDFREQ_SLOR, "unigrams of wordfreq, where the paper counts those of its training corpus"
    own = f"the model's own unigrams, {_UNIGRAMS_FILE} in its folder"
    note = f"{own}: those of its training corpus, add-one, as in the paper"
    return format_spec("slor", {"unigrams": str(folder / _UNIGRAMS_FILE)}), note


def read_recipe_metadata(model: str) -> RecipeMetadata | None:
    """Return the ``recipe.json`` in a model's folder; None if there is none."""
    folder = _find_folder(model)
    if folder is None or not (folder / RECIPE_FILE).is_file():
        return None
    metadata = update_metadata(_read_json(folder / RECIPE_FILE))
    try:
        files, options = tuple(map(str, metadata["files"])), dict(metadata["recipe"])
        return RecipeMetadata(str(metadata["kind"]), files, int(metadata["words"]), str(metadata["corpus"]), options)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / RECIPE_FILE} lacks one of kind, files, words, corpus and recipe, which training writes: {error}"
        ) from None


def describe_training_text(model: str) -> str:
    """Return a description of a model's training text, from its ``recipe.json``; empty if there is none."""
    metadata = read_recipe_metadata(model)
    if metadata is None:
        return ""
    names = ", ".join(metadata.files[:3]) + (f" and {len(metadata.files) - 3} more" if len(metadata.files) > 3 else "")
    case = {True: ", in lower case", False: ", in upper and lower case"}.get(metadata.options.get("lower", ""), "")
    return f"trained on {metadata.word_count:,} words of {names} (sha256 {metadata.corpus_sha256[:12]}){case}"


def _find_folder(model: str) -> Path | None:
    """Return the folder of a model; None if it is a file or a name on the Hub."""
    location = parse_model_spec(model)[1]
    # The whole location first: "@" may be part of the folder's name and need not start a revision.
    without_revision = location.rpartition("@")[0]
    return next((Path(path) for path in (location, without_revision) if path and Path(path).is_dir()), None)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {file}: {error}") from error
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True)
class PaperModel:
    """One of the paper's own models.

    Args:
        name: Its name in Table 2.
        text: Its training text: BNC or WT103.
    """

    name: str
    text: str

    def describe_wanted_model(self) -> str:
        """Return a note on which model of ours would fill its rows."""
        lower = str(self.text == "BNC").lower()
        return f"a model of our recipe {_RECIPES[self.name]}, lower={lower}, stands here when --model gives it"


def match_paper_model(model: str) -> PaperModel | None:
    """Return the paper's model that a model corresponds to, by its ``recipe.json``; None if there is none."""
    metadata = read_recipe_metadata(model)
    name = _find_model_name(metadata) if metadata else None
    if metadata is None or name is None:
        return None
    # The recipe does not record which text it was. The case stands for it: the paper's models of the BNC are
    # lower-cased, those of WikiText-103 are not, except Pereira's.
    return PaperModel(name, "BNC" if metadata.options.get("lower") is True else "WT103")


def _find_model_name(metadata: RecipeMetadata) -> str | None:
    if metadata.kind == "qrnn":
        return "QRNN TAS" if metadata.options.get("output") == "tas_double" else "QRNN regular"
    return {"aggregate-markov": "Pereira", "rnn": "Mikolov"}.get(metadata.kind)


def index_by_paper_model(models: Sequence[str]) -> dict[PaperModel, str]:
    """Return the user's models by the paper's model that they correspond to; two for the same one are an error."""
    by_paper_model: dict[PaperModel, str] = {}
    for model in models:
        paper_model = match_paper_model(model)
        # None is never a key, so that models that correspond to no row do not collide.
        if paper_model in by_paper_model:
            raise SpecError(
                f"{by_paper_model[paper_model]} and {model} would both stand in the paper's row {paper_model.name}, "
                f"column {paper_model.text}, by their recipe.json: give one of them"
            )
        if paper_model:
            by_paper_model[paper_model] = model
    return by_paper_model


def find_paper_model(key: CellKey) -> PaperModel | None:
    """Return the model that a cell of the paper is about; None if it is about none of these models.

    >>> find_paper_model(("Table 2", "QRNN TAS, Raw", "WT103 LOG"))
    PaperModel(name='QRNN TAS', text='WT103')
    >>> find_paper_model(("Table 4", "Mikolov BNC, Norm EXP", "groups above 4, median"))
    PaperModel(name='Mikolov', text='BNC')
    """
    table, row, column = key
    name, text = row.partition(",")[0], column.partition(" ")[0]
    if table == "Table 1":
        name = _IN_TABLE_1.get(name, name)
    elif table == "Table 4":
        name, _, text = name.rpartition(" ")
    elif table == "Table 5":
        # By section 5.5. The numbers printed are those of the BNC in Table 2, which "Contradictions" shows.
        text = "WT103"
    elif table == "Table 6":
        name, text = _IN_TABLE_6.get(name, name), {"WT": "WT103"}.get(text, text)
    return PaperModel(name, text) if name in _RECIPES and text in _TEXTS else None


def fill_paper_cells(
    values: PublishedValues, models: Mapping[PaperModel, str], own: Mapping[CellKey, Cell]
) -> dict[CellKey, Cell]:
    """Return the cells of the paper that the user's models fill, with the paper's value beside ours.

    Args:
        values: The paper's values.
        models: The user's models, by the paper's model that they correspond to.
        own: The cells of the models' own rows.
    """
    cells = {}
    for key in values:
        paper_model = find_paper_model(key)
        model = models.get(paper_model) if paper_model else None
        cell = _find_own_cell(key, model, own) if model else None
        if paper_model and model and cell:
            source = NOT_COMPUTED if cell.ours is None else _describe_source(model, paper_model)
            cells[key] = make_uncompared_cell(values, key, cell.ours, source, note=_join_notes(key, cell))
    return cells


def _join_notes(key: CellKey, cell: Cell) -> str:
    return "; ".join(filter(None, (cell.note, _QRNN_R_NOTE if key[1].startswith(("QRNN,", "QRNN-R,")) else "")))


def _find_own_cell(key: CellKey, model: str, own: Mapping[CellKey, Cell]) -> Cell | None:
    """Return the cell of a model's own row that corresponds to a cell of the paper."""
    table, row, column = key
    if table == "Table 1":
        return next((cell for (of, name, _), cell in own.items() if (of, name) == (table, model)), None)
    # Where text, groups or strings are ours, our columns have names of their own.
    columns = {"Table 4": f"our {column}", "Table 5": column, "Table 6": SENSE_COLUMN}
    return own.get((table, f"{model}, {row.rpartition(', ')[2]}", columns.get(table, column.rpartition(" ")[2])))


def _describe_source(model: str, paper_model: PaperModel) -> str:
    """Return how our model was trained, and on which text the paper's was."""
    metadata = read_recipe_metadata(model)
    assert metadata is not None
    output = f" (output {metadata.options['output']})" if "output" in metadata.options else ""
    vocabulary_size = metadata.options.get("vocabulary")
    words = f"vocabulary {vocabulary_size:,}" if vocabulary_size else "every word known"
    case_note = ", lower-cased for this model" if paper_model == PaperModel("Pereira", "WT103") else ""
    ours = (
        f"our recipe {metadata.kind}{output} on {metadata.word_count:,} words of other text "
        f"(sha256 {metadata.corpus_sha256[:8]}…), {_CASES[paper_model.text]}, {words}"
    )
    return f"{ours}; the paper: {_TEXTS[paper_model.text]}{case_note}"
