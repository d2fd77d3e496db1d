"""Arguments of the public functions: what may be a text may be the object, and one may be given where many are allowed.

Each ``as_…`` function takes what a user gives and returns what the package works with; anything else is an error of
ours, which says what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from acceptability import registry
from acceptability.engine import load_engine
from acceptability.errors import (
    MeasureError,
    ModelError,
    ScoreError,
    SpecError,
    SuiteError,
    UnknownName,
    shorten,
    suggest_name,
    warn_of_former_name,
)
from acceptability.measures import load_measure
from acceptability.models import list_named_models, load_model
from acceptability.models.kinds import complete_model_spec
from acceptability.protocols import Engine, Measure, Model, Reduction, complete_measure, complete_model
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.sampling_units import parse_sampling_unit
from acceptability.suites import load_catalog, load_suite
from acceptability.suites.column_names import MEANINGS
from acceptability.suites.frames import is_pandas
from acceptability.types import Sentence, Suite

if TYPE_CHECKING:
    import pandas as pd

SuiteLike: TypeAlias = "Suite | str | Path | pd.DataFrame"
"""A suite, its name, the path of a file, or a data frame."""
SentencesLike: TypeAlias = "Suite | str | Path | pd.DataFrame | pd.Series | Sequence[str]"
"""A suite in one of these forms, or sentences themselves: a list or a series of texts."""
ModelLike: TypeAlias = "str | Model"
ReductionLike: TypeAlias = "str | Reduction | type[Reduction]"
MeasureLike: TypeAlias = "str | Measure"

ArgumentTypes = ParamSpec("ArgumentTypes")
ReturnT = TypeVar("ReturnT")


def accept_former_arguments(
    **present_names: str,
) -> Callable[[Callable[ArgumentTypes, ReturnT]], Callable[ArgumentTypes, ReturnT]]:
    """Let a function take keyword arguments by their former names too, with a warning, for one release.

    Args:
        present_names: What each former name is called now.
    """

    def decorate(function: Callable[ArgumentTypes, ReturnT]) -> Callable[ArgumentTypes, ReturnT]:
        @wraps(function)
        def call(*args: ArgumentTypes.args, **options: ArgumentTypes.kwargs) -> ReturnT:
            for former, present in present_names.items():
                if former in options:
                    name = function.__name__
                    if present in options:
                        raise SpecError(f"{name}: {present} is given twice, once by its former name {former}")
                    warn_of_former_name(f"the argument {former} of {name}", present)
                    options[present] = options.pop(former)
            return function(*args, **options)

        return call

    return decorate


def as_list(given: Any) -> list[Any]:
    """Return what was given as a list: several things, a single one, or none.

    >>> as_list("uniform"), as_list(("a", "b")), as_list(None)
    (['uniform'], ['a', 'b'], [])
    """
    if given is None:
        return []
    # A text is a sequence of texts, and a suite has a length; neither means many of something here.
    return list(given) if isinstance(given, list | tuple) else [given]


def as_suite(suite: SuiteLike, *, columns: Mapping[str, str] | None = None, unit: str | None = None) -> Suite:
    """Return a suite, loaded if it was given as a name or a path, or read from a data frame.

    Args:
        suite: A suite, a name in the catalog, the name of one of its paradigms, a path, or a data frame.
        columns: For a table or a data frame: the names of its columns by their meaning.
        unit: The sampling unit, if not that of the suite.
    """
    if is_pandas(suite, "DataFrame"):
        return Suite.from_frame(suite, unit=unit, **(columns or {}))
    if isinstance(suite, str | Path):
        return _load_named_suite(str(suite), columns, unit)
    if not isinstance(suite, Suite):
        raise SuiteError(
            f"expected a suite, its name, a file or a pandas DataFrame, and this is {_describe(suite)}. Sentences "
            "alone have scores, but are no suite: score([...], model)."
        )
    if columns:
        raise SuiteError(f"columns can be named for tables and data frames only, and {suite.name!r} is a suite already")
    return suite if unit is None else replace(suite, unit=unit)


def _load_named_suite(name: str, columns: Mapping[str, str] | None, unit: str | None) -> Suite:
    try:
        return load_suite(name, columns=columns, unit=unit)
    except UnknownName as error:
        entries = [entry for entry in load_catalog() if any(Path(path).stem == name for path in entry.files)]
        # The paradigms of BLiMP and its relatives are files of their own, named after them.
        if len(entries) != 1 or "/" in name:
            hint = " To score a sentence, give it in a list: score(['Cats sleep.'], model)." if " " in name else ""
            if len(entries) > 1:
                hint = f" Several suites have a file of this name: {', '.join(entry.id for entry in entries)}."
            if hint:
                raise SuiteError(f"{error}{hint}") from error
            raise
        suite = load_suite(entries[0].id, unit=unit)
        if "paradigm" not in suite.tag_names:
            raise
        return suite.filter(paradigm=name)


def as_suites(suites: SuiteLike | Sequence[SuiteLike], **options: Any) -> list[Suite]:
    """Return suites, given as one or as a list; the options are those of ``as_suite``."""
    given = as_list(suites)
    if not given:
        raise SuiteError("no suite was given; acceptability.list_suites() shows those of the catalog")
    return [as_suite(suite, **options) for suite in given]


def list_texts(sentences: Sequence[str] | pd.Series, name: str = "sentences") -> list[str]:
    """Return sentences, given as a list or as a series, as a list of texts.

    Args:
        sentences: The sentences.
        name: What they are called in an error.
    """
    if isinstance(sentences, str) or not (is_pandas(sentences, "Series") or isinstance(sentences, list | tuple)):
        raise SpecError(f"{name}: expected a list of texts, and this is {_describe(sentences)}")
    texts = list(sentences)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise SuiteError(f"{name}: number {number} is {_describe(text)}; expected a text")
    if not texts:
        raise SuiteError(f"{name}: the list is empty")
    return texts


def check_typed_texts(texts: Sequence[str]) -> None:
    """Raise an error for an empty sentence, and for a single one that is the name of a file.

    >>> check_typed_texts(["Cats sleep."])
    """
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            raise SuiteError(f"sentence {number} is empty; expected a text")
    if len(texts) == 1 and _is_file(texts[0]):
        raise SpecError(
            f"{texts[0]!r} is a file, and sentences are expected here. For the sentences in it, one a line: "
            f"acceptability judge --file {texts[0]}; for a suite: load_suite({texts[0]!r}), or acceptability evaluate"
        )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    # A sentence may be too long for a name, or have a NUL.
    except (OSError, ValueError):
        return False


def make_text_suite(texts: Sequence[str], context: str | Sequence[str] = "", name: str = "sentences") -> Suite:
    """Return the suite of some sentences, which are numbered from 1.

    Args:
        texts: The sentences.
        context: A text before all of them, or one for each; models read it and do not score it.
        name: The name of the suite.

    >>> make_text_suite(["Cats sleep."], context="Look!")["1"].tags
    {'context': 'Look!'}
    """
    contexts = [context] * len(texts) if isinstance(context, str) else list_texts(context, "context")
    if len(contexts) != len(texts):
        raise SpecError(f"context has {len(contexts)} texts, and there are {len(texts)} sentences")
    return Suite(
        name,
        tuple(
            Sentence(str(number), text, tags={"context": before} if before else {})
            for number, (text, before) in enumerate(zip(texts, contexts, strict=True), start=1)
        ),
    )


def as_sentences(sentences: SentencesLike, context: str | Sequence[str] = "") -> Suite:
    """Return the suite of what is to be scored: a suite in any form, or a list or series of texts.

    Args:
        sentences: A suite, its name, a path, a data frame, or texts.
        context: A text before all sentences, or a list with one for each.
    """
    if isinstance(sentences, list | tuple) or is_pandas(sentences, "Series"):
        return make_text_suite(list_texts(sentences), context)
    suite = as_suite(sentences)
    if not context:
        return suite
    return add_context(suite, context)


def add_context(suite: Suite, context: str | Sequence[str]) -> Suite:
    """Return a suite whose sentences are read after a context, which becomes their tag ``context``."""
    contexts = [context] * len(suite) if isinstance(context, str) else list_texts(context, "context")
    if len(contexts) != len(suite):
        raise SpecError(f"context has {len(contexts)} texts, and suite {suite.name!r} has {len(suite)} sentences")
    if any(sentence.tags.get("context") for sentence in suite):
        raise SuiteError(f"the sentences of suite {suite.name!r} have contexts of their own: omit context")
    sentences = (
        replace(sentence, tags={**sentence.tags, "context": before})
        for sentence, before in zip(suite, contexts, strict=True)
    )
    return replace(suite, sentences=tuple(sentences))


_MODEL_ATTRIBUTES = ("signature", "encode", "run")


def as_model(model: ModelLike) -> tuple[str, Model]:
    """Return a model's name in tables and the model, loaded if it was given as a spec.

    The name of a model that is given as a spec is the spec with its kind: ``causal:gpt2`` for ``gpt2``.
    """
    if isinstance(model, str):
        spec = complete_model_spec(model)
        return spec, load_model(spec)
    if isinstance(model, type) or not all(hasattr(model, name) for name in _MODEL_ATTRIBUTES):
        raise ModelError(
            f"expected a model or its name, and this is {_describe(model)}. A model has signature, encode and run; "
            "from_function and from_transformers make one."
        )
    completed = complete_model(model)
    return completed.display_name, completed


def is_model_name(text: str) -> bool:
    """Tell whether a text is the name or the spec of a model.

    >>> is_model_name("trigram"), is_model_name("causal:gpt2"), is_model_name("Cats sleep.")
    (True, True, False)
    """
    kind = text.partition(":")[0].partition("(")[0]
    return kind in list_named_models() or (kind in registry.names("model") and not text.endswith("."))


def as_models(models: ModelLike | Sequence[ModelLike]) -> list[ModelLike]:
    """Return models, given as one or as a list, after checking that each can be one; specs have their kinds."""
    given: list[ModelLike] = as_list(models)
    if not given:
        raise ModelError("no model was given; acceptability.list_models() shows those that need no download")
    checked = [(model, as_model(model)) for model in given]
    # The kind is looked up once, here: for a model on the Hub that is a request.
    return [spec if isinstance(model, str) else model for model, (spec, _) in checked]


def as_reduction(reduce: ReductionLike) -> Reduction:
    """Return a reduction, made if it was given as a spec or as a class; an unreadable unigram table is an error."""
    reduction: Reduction = registry.make("reduction", reduce) if isinstance(reduce, str) else _check_reduction(reduce)
    # The signature includes the table's hash, so that a missing table is an error now and not after hours of scoring.
    _ = reduction.signature
    return reduction


def _check_reduction(reduce: Any) -> Reduction:
    # A class in place of a value is a frequent slip: lp for lp().
    is_class = isinstance(reduce, type) and hasattr(reduce, "signature")
    reduction = registry.call_factory(reduce, reduce.__name__, [], {}) if is_class else reduce
    if not callable(reduction) or not hasattr(reduction, "signature"):
        raise ScoreError(f"expected a reduction or its name, such as lp or slor(...), and this is {_describe(reduce)}")
    return reduction  # type: ignore[no-any-return]


def as_reductions(reduce: ReductionLike | Sequence[ReductionLike] | None) -> list[Reduction]:
    """Return reductions, given as one, as a list, or not at all."""
    return [as_reduction(reduction) for reduction in as_list(reduce)]


def as_measures(measure: MeasureLike | Sequence[MeasureLike] | None) -> list[Measure]:
    """Return measures, given as one, as a list, or not at all; each as a spec or as an object."""
    return [_as_measure(given) for given in as_list(measure)]


def _as_measure(measure: MeasureLike) -> Measure:
    if isinstance(measure, str):
        return load_measure(measure)
    # A class in place of a value is a frequent slip: PairAccuracy for PairAccuracy().
    is_class = isinstance(measure, type) and hasattr(measure, "units")
    made: Any = registry.call_factory(measure, measure.__name__, [], {}) if is_class else measure  # type: ignore[arg-type, attr-defined]
    if not all(hasattr(made, name) for name in ("needs", "units", "value")):
        raise MeasureError(f"expected a measure or its name, such as PairAccuracy, and this is {_describe(measure)}")
    return complete_measure(made)


def as_engine(engine: str | Engine) -> Engine:
    """Return an engine, created if it was given as a spec."""
    return load_engine(engine) if isinstance(engine, str) else engine


def as_bootstrap(
    bootstrap: Bootstrap | None,
    resamples: int | None,
    resample_by: str | None,
    seed: int | None,
    interval: str | None,
) -> Bootstrap | None:
    """Return the bootstrap of the intervals, given as an object or by its single settings; None for the default."""
    settings = (resamples, resample_by, seed, interval)
    if all(setting is None for setting in settings):
        return bootstrap
    if bootstrap is not None:
        raise SpecError("bootstrap has resamples, resample_by, seed and interval: give it or these, not both")
    by, within = parse_sampling_unit(resample_by)
    return Bootstrap(
        resamples=1000 if resamples is None else resamples,
        by=by,
        seed=seed or 0,
        method=interval or "auto",
        within=within,
    )


def merge_columns(columns: Mapping[str, str] | None, column_names: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of a table by their meaning, from ``columns={"good": "g"}`` and from ``good="g"``.

    >>> merge_columns({"text": "Sentence"}, {"label": "ok"})
    {'text': 'Sentence', 'label': 'ok'}
    """
    for name, column in column_names.items():
        if name not in MEANINGS:
            raise SpecError(
                f"there is no argument {name!r}, and no column has this meaning; the meanings are "
                f"{', '.join(MEANINGS)}.{suggest_name(name, MEANINGS)}"
            )
        if not isinstance(column, str):
            raise SpecError(f"{name}: expected the name of a column, and this is {_describe(column)}")
    return {**(columns or {}), **column_names} or None


def check_list(name: str, argument: object) -> None:
    """Raise an error for a single string where a list is expected, since Python would iterate over its characters."""
    # A string is a sequence of strings too, so a type checker does not catch this.
    if isinstance(argument, str):
        raise SpecError(f"{name} is the text {shorten(argument)!r}; expected a list of texts: [{shorten(argument)!r}]")


def _describe(value: object) -> str:
    """Return what a value is, for an error: its type, and a short text itself."""
    if isinstance(value, str):
        return f"the text {shorten(value)!r}"
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
