"""Computing results again from the fields of their signatures.

``Recomputation`` finds what a signature names (suites, models, files of scores) among saved runs, in the catalog, in
packages and in the folders that the user names, and accepts it only if its hash is that of the signature. A function
for each kind of result then calls what computed it first: ``measure``, ``compare``, ``correlate``, ``link`` and so on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.api.comparison import compare, correlate
from acceptability.api.contrasts import evaluate_contrasts
from acceptability.api.evaluation import measure, needs_regions
from acceptability.api.interface.arguments import as_reduction
from acceptability.api.linking import LinkResampling, link
from acceptability.api.rating_tables import ResponseOptions, ScoreFile, build_choice_tables, build_rating_tables
from acceptability.api.recalibration import calibrate
from acceptability.api.scoring import ProgressCallback, judge, score_reductions, score_rows
from acceptability.api.significance.equivalence import equivalence
from acceptability.api.significance.planning import power_from_options
from acceptability.errors import AcceptabilityError, MeasureError, ModelError, ScoreError, SpecError, SuiteError
from acceptability.measures import load_measure
from acceptability.models import HUB_KINDS, find_signed_spec, load_model, split_signed_location
from acceptability.models.files import hash_file
from acceptability.protocols import Engine
from acceptability.reductions import find_unigram_reduction
from acceptability.specs import (
    format_parsed_spec,
    map_spec_texts,
    parse_model_spec,
    parse_signature,
    parse_spec,
)
from acceptability.stats.bootstrap import Bootstrap, parse_bootstrap
from acceptability.store.runs import find_part, iter_input_suites
from acceptability.store.scorefile import SignedScores, parse_score_signature, read_scores
from acceptability.suites import find_entries, find_source_kind, is_catalog_name, load_suite
from acceptability.suites.table_files import TableOptions
from acceptability.text.containers import drop_gzip_suffix
from acceptability.types import SINGLE_ROWS, Scores, Suite, find_named_part, split_part_name

Row = Mapping[str, object]
Fields = Mapping[str, str]


def _is_named(file: Path, base: str) -> bool:
    """Tell whether the suite in a file, an archive or a folder has a name."""
    stem = file.name if file.is_dir() else Path(drop_gzip_suffix(file.name)).stem.removesuffix(".tar")
    return stem == base and (file.is_dir() or not is_catalog_name(str(file)))


@dataclass(frozen=True)
class SavedInputs:
    """What a saved run was given.

    Args:
        folder: The folder of the run, with the suites that were saved whole.
        inputs: Its inputs, as ``run.json`` describes them.
        is_own: Whether the run is among the user's own, and not a folder that may come from somebody else.
    """

    folder: Path
    inputs: Mapping[str, Any]
    is_own: bool


@dataclass(frozen=True)
class Materials:
    """Where to look for what a signature names.

    Args:
        models: Specs of models, of which those with the right signature are used.
        data: Files, or ``hf:OWNER/NAME``, that may be the suite or the scores.
        options: What the user says about the tables among these files.
        look_in: Folders to search for models and files.
        runs: What saved runs were given.
        engine: Where models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
    """

    models: Sequence[str] = ()
    data: Sequence[str] = ()
    options: TableOptions = field(default_factory=TableOptions)
    look_in: Sequence[Path] = ()
    runs: Sequence[SavedInputs] = ()
    engine: str | Engine = "local"
    progress: ProgressCallback | None = None

    @property
    def folders(self) -> list[Path]:
        """The folders to search: those of the user, and those in which the saved runs were made."""
        return [*self.look_in, *(Path(str(run.inputs.get("folder", "."))) for run in self.runs if run.is_own)]


class _SignatureFields(dict[str, str]):
    """The fields of a signature, which somebody may have written by hand or copied in part."""

    def __missing__(self, name: str) -> str:
        """Raise an error that names the field."""
        raise SpecError(f"the signature has no {name}: is it complete?")


class MissingInputs(AcceptabilityError):
    """What a signature names and is not here, one line each.

    Args:
        problems: The lines.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class NotReproducible(AcceptabilityError):
    """A kind of result whose signature does not suffice; the message says what to run instead."""


class Recomputation:
    """Finds what signatures name, and computes their results; what several of them share is computed once.

    Args:
        materials: Where to look.
    """

    def __init__(self, materials: Materials) -> None:
        self.materials = materials
        self._suites: dict[tuple[str, bool], Suite] = {}
        self._models: dict[str, str] = {}
        self._scores: dict[tuple[str, str, bool], Scores] = {}
        self._rows: dict[tuple[object, ...], list[Row]] = {}

    def compute_rows(self, signature: str) -> list[Row]:
        """Return the rows of the result, or results, that have a signature."""
        fields = _SignatureFields(parse_signature(signature))
        name = fields["measure"].partition("(")[0]
        if name in _COMMANDS_INSTEAD:
            raise NotReproducible(f"a result of {name} needs more than its signature: run {_COMMANDS_INSTEAD[name]}")
        is_equivalence = fields.get("test", "").startswith("tost(")
        tested = _recompute_equivalence if is_equivalence else _recompute_comparison
        compute = _KINDS.get(name) or (tested if "test" in fields else _recompute_measure)
        return compute(self, fields)

    def share(self, key: tuple[object, ...], compute: Callable[[], list[Row]]) -> list[Row]:
        """Return rows that were computed before under a key, or compute them."""
        if key not in self._rows:
            self._rows[key] = compute()
        return self._rows[key]

    def find_suite(self, signature: str, *, any_content: bool = False) -> Suite:
        """Return the suite of a signature.

        Args:
            signature: The suite's name and hash.
            any_content: Whether a suite of this name will do, since the hash is that of a part which is chosen later.
        """
        key = (signature, any_content)
        if key not in self._suites:
            self._suites[key] = self._search_suite(signature, any_content)
        return self._suites[key]

    def _search_suite(self, signature: str, any_content: bool) -> Suite:
        name, _, content = signature.rpartition("#")
        if _TARGETS.match(signature):
            raise NotReproducible(
                f"the contrasts of {name} were chosen by what a model can score: run `acceptability methods`, or "
                "`contrasts`, whose signature suffices"
            )
        others: list[str] = []
        for suite in self._iter_suites(signature):
            if found := find_part(suite, signature):
                return found
            part = find_named_part(suite, name)
            if part and any_content:
                return part
            if part:
                others.append(part.hash)
        if others:
            raise SuiteError(f"suite {name}: its hash is {others[0]} here, not {content}: its content differs")
        if find_entries(split_part_name(name)[0]):
            # Raises the error about the data, which may be neither here nor reachable.
            load_suite(split_part_name(name)[0])
        raise SuiteError(
            f"suite {name}: it is neither in the catalog nor in a file of this name in the current folder; give it: "
            "--data FILE"
        )

    def _iter_suites(self, signature: str) -> Iterator[Suite]:
        """Yield the suites that may have a signature, the likeliest first."""
        name = signature.rpartition("#")[0]
        for run in self.materials.runs:
            yield from iter_input_suites(run.folder, run.inputs, name)
        base = split_part_name(name)[0]
        for path in self.materials.data:
            if not is_catalog_name(path):
                yield from self._try_suite(path)
        # A file and a suite of the catalog may have the same name, so the catalog is tried even if a file was found.
        for candidate in dict.fromkeys((name, base)):
            if is_catalog_name(candidate):
                yield from self._try_suite(candidate)
        for folder in (Path(), *self.materials.folders):
            for file in sorted(folder.glob("*")) if "/" not in base else ():
                if _is_named(file, base):
                    yield from self._try_suite(str(file))

    def _try_suite(self, name: str) -> Iterator[Suite]:
        """Yield a suite if it can be read, by the columns that were given now or when a saved run read it."""
        is_table = find_source_kind(name) in ("table", "hub", "text")
        recorded = [
            {**suite.get("reading", {}), "columns": suite["columns"]}
            for run in self.materials.runs
            for suite in run.inputs.get("suites", ())
            if is_table
        ]
        for reading in (self.materials.options.describe() if is_table else {}, *recorded, {}):
            try:
                yield load_suite(name, **reading)
            # It is another file of this name, or has other columns; if none fits, the error says what was looked for.
            except AcceptabilityError:
                continue

    def find_model(self, signature: str) -> str:
        """Return the spec by which the model of a signature can be opened."""
        if signature not in self._models:
            self._models[signature] = self._search_model(signature)
        return self._models[signature]

    def _search_model(self, signature: str) -> str:
        recorded = [spec for run in self.materials.runs if run.is_own for spec in run.inputs.get("models", ())]
        # Code of a model's own runs only if the user names the model, and not because a signature says so.
        trusted = [spec for spec in recorded if "trust_remote_code" not in spec]
        for spec in dict.fromkeys((*self.materials.models, *trusted)):
            try:
                if load_model(str(spec)).signature == signature:
                    return str(spec)
            except AcceptabilityError:
                # The models of other results, or one that has moved since: the signature is tried next.
                continue
        _check_signed_model(signature)
        kind, name, _ = parse_model_spec(signature)
        try:
            spec = find_signed_spec(signature, look_in=self.materials.folders)
            opened = load_model(spec).signature
        except ModelError as error:
            raise ModelError(f"{error}; name its place: --look-in FOLDER or --model '{kind}:PATH'") from error
        if opened != signature:
            raise ModelError(f"{kind}:{name} opens as {opened}, not as {signature}")
        return spec

    def find_file(self, name: str, content: str) -> Path:
        """Return the file of a name whose content has a hash."""
        recorded = [path for run in self.materials.runs if run.is_own for path in run.inputs.get("files", ())]
        folders = (Path(), *self.materials.folders)
        # Names come from signatures, perhaps a stranger's: they must not lead out of these folders.
        here = [folder / name for folder in folders if Path(name).name == name]
        candidates = [Path(path).expanduser() for path in (*self.materials.data, *recorded, *here)]
        files = [path for path in dict.fromkeys(candidates) if path.is_file()]
        hashes = {path: hash_file(path) for path in files if path.name == name or str(path) in self.materials.data}
        if found := [path for path, digits in hashes.items() if digits == content]:
            return found[0]
        if hashes:
            path, digits = next(iter(hashes.items()))
            raise ScoreError(f"{path} has the hash {digits}, not {content}: its content differs")
        raise ScoreError(f"the file {name} is not here; give it: --data FILE, or its folder: --look-in FOLDER")

    def find_scores(self, suite: Suite, source: str, *, by_region: bool = False) -> Scores:
        """Return the scores that a signature names: of a model under a reduction, or in a file.

        Args:
            suite: The suite; for a file with ``where``, the whole one.
            source: The signature of the scores.
            by_region: Whether the scores of regions are needed too.
        """
        key = (suite.signature, source, by_region)
        if key not in self._scores:
            signed = parse_score_signature(source)
            self._scores[key] = (
                self._read_file(suite, source, signed) if signed else self._run_model(suite, source, by_region)
            )
        return self._scores[key]

    def _read_file(self, suite: Suite, source: str, signed: SignedScores) -> Scores:
        path = self.find_file(signed.file, signed.content)
        recorded = [run.inputs.get("columns") for run in self.materials.runs if run.inputs.get("files")]
        # The record of a run is exact; a signature in which names of columns contain commas can be read in two ways.
        for columns in (signed.columns, *filter(None, recorded)):
            try:
                all_scores = read_scores(path, suite, columns, partial=signed.partial, where=signed.where)
            except AcceptabilityError as error:
                problem = str(error)
                continue
            if found := next((scores for scores in all_scores if scores.signature == source), None):
                return found
            problem = f"{path} has no column of scores {source}"
        raise ScoreError(problem)

    def _run_model(self, suite: Suite, source: str, by_region: bool) -> Scores:
        model, reduction, region = self.split_source(source)
        return score_reductions(
            suite,
            self.find_model(model),
            [self.find_reduction(reduction)],
            region=region or None,
            by_region=by_region,
            engine=self.materials.engine,
            progress=self.materials.progress,
        )[0]

    def split_source(self, source: str) -> tuple[str, str, str]:
        """Return the model, the reduction and the region in the signature of scores."""
        for match in reversed(list(_REDUCTION_START.finditer(source))):
            reduction, region = _split_region(source[match.end() - 1 :])
            if match[1] in registry.names("reduction") and reduction is not None:
                return source[: match.start()], match[1] + reduction, region
        raise NotReproducible(
            f"the scores {source} are not those of one model under a reduction that is installed: run the command that "
            "made them"
        )

    def find_reduction(self, signature: str) -> str:
        """Return the spec of a reduction, with the path of its table of unigrams."""
        parsed = parse_spec(_drop_tables(signature))
        # Every text is the name of a table, wherever it stands and however it is quoted.
        spec = format_parsed_spec(map_spec_texts(parsed, self._find_table))
        table = find_unigram_reduction(as_reduction(spec))
        # The table's name and hash stand behind the reduction that uses it.
        if table and f"[{table.table.signature}," not in signature:
            raise ScoreError(f"the table of unigrams is {table.table.signature} here, not as in {signature}")
        return spec

    def _find_table(self, name: str) -> str:
        """Return the path of a table of unigrams."""
        if name.startswith("wordfreq:"):
            return name
        # Written as it was typed, perhaps by a stranger: a path is followed from the folder of one's own runs only.
        candidates = [folder / name for folder in self.materials.folders[len(self.materials.look_in) :]]
        candidates += [Path(path) for path in self.materials.data if Path(path).name == Path(name).name]
        candidates += [folder / Path(name).name for folder in (Path(), *self.materials.folders)]
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            raise ScoreError(f"the table of unigrams {name} is not here; give it: --data FILE")
        return str(path)

    def list_problems(self, signature: str) -> list[str]:
        """Return a line for each input of a result that is missing or has another content."""
        fields = parse_signature(signature)
        checks: list[Callable[[], object]] = []
        sources = _list_sources(fields)
        if "suite" in fields and not fields["measure"].startswith("contrasts"):
            checks.append(lambda: self.find_suite(fields["suite"], any_content=_is_partial(sources)))
        for source in sources:
            checks.append(lambda source=source: self._check_source(source))  # type: ignore[misc]
        if fields["measure"].partition("(")[0] not in (*_KINDS, *_COMMANDS_INSTEAD):
            checks.append(lambda: _check_measure(fields["measure"]))
        problems = []
        for check in checks:
            try:
                check()
            except NotReproducible:
                raise
            except AcceptabilityError as error:
                problems.append(str(error))
        return list(dict.fromkeys(problems))

    def _check_source(self, source: str) -> None:
        signed = parse_score_signature(source)
        if signed:
            self.find_file(signed.file, signed.content)
            return
        model, reduction, _ = self.split_source(source)
        problems = []
        for find, name in ((self.find_model, model), (self.find_reduction, reduction)):
            try:
                find(name)
            except AcceptabilityError as error:
                problems.append(str(error))
        if problems:
            raise MissingInputs(problems)


# The name of a file or folder, and no path that could lead out of the folders that are searched; or an id on the Hub.
_FILE_NAME = re.compile(r"(?!~)[^/\\]+\Z")
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*\Z")


def _check_signed_model(signature: str) -> None:
    """Raise an error for the signature of a model that only the user can open, since it may come from a stranger."""
    kind, location, options = parse_model_spec(signature)
    kind = registry.current_name("model", kind)
    if options.get("trust_remote_code", False) is not False:
        raise ModelError(f"{signature} runs code of its own; if you trust it, name it: --model 'KIND:PATH(trust_…)'")
    if kind == "remote":
        raise ModelError(f"{signature}: a signature has no address; name it: --model 'remote:URL#MODEL'")
    if kind not in registry.names("model"):
        raise ModelError(f"{signature}: no installed package has models of the kind {kind!r}: install its plug-in")
    # Templates are signed by their names and a hash. Weights in pickle files are read only if the user says so.
    if found := sorted({"templates", "allow_pickle"} & set(options)):
        raise ModelError(f"{signature}: a signature has no {found[0]}; name the model: --model '{kind}:…'")
    if kind == "prompted":
        _check_signed_model(location)
    elif location:
        name, _ = split_signed_location(location) or ("", "")
        if not (_FILE_NAME.match(name) or (kind in HUB_KINDS and _HUB_ID.match(name))):
            raise ModelError(
                f"{signature}: a signature has a model's name and hash, and no path; name it: --model '{kind}:PATH'"
            )


_REDUCTION_START = re.compile(r"\.([A-Za-z_]\w*)\(")

# Their inputs (a corpus, a test set, an encoder's states, a table) are in no saved run. A formula can call functions,
# so that no signature may start one.
_COMMANDS_INSTEAD = {
    "perplexity": "`acceptability perplexity MODEL --corpus FILE`",
    "pseudo_perplexity": "`acceptability perplexity MODEL --pseudo --corpus FILE`",
    "predictions": "`acceptability submit` with the same test set",
    "probe": "`acceptability probe` with the options of its signature",
    "annotate": "`acceptability annotate` with the table and the model of its signature",
    "complete": "`acceptability complete` with the text and the model of its signature",
    "regress": "`acceptability regress` with the formula and the data of its signature",
}


def _check_measure(text: str) -> None:
    name = parse_spec(text).name
    if name not in registry.names("measure"):
        raise MeasureError(f"no installed package has the measure {name!r}: install its plug-in")
    load_measure(text)


def _list_sources(fields: Fields) -> list[str]:
    """Return the signatures of all scores that a result is computed from."""
    if fields["measure"].startswith("correlate("):
        return _split_joined(fields.get("models", ""), " and ")
    # What scores of tokens or words lack is said when they are to be computed.
    if fields["measure"] == "score":
        return []
    if fields["measure"].startswith(("fit_morcela(", "fit_slln_lp(")):
        return [f"{fields.get('model')}.{fields.get('reduction')}"]
    if "model" not in fields or fields["measure"].partition("(")[0] in _COMMANDS_INSTEAD:
        return []
    if "family" in fields:
        return _split_joined(fields["family"], " and ")
    return _split_joined(fields.get("model", ""), " minus ") if "test" in fields else [fields.get("model", "")]


def _split_joined(text: str, separator: str) -> list[str]:
    """Return the signatures of scores that are joined by a word, which the name of a file may contain too."""
    parts = text.split(separator)
    joined = [parts[0]]
    for part in parts[1:]:
        is_start = part.startswith("file:") or bool(_REDUCTION_START.search(part))
        is_end = joined[-1].startswith("file:") or bool(_REDUCTION_START.search(joined[-1]))
        if is_start and is_end:
            joined.append(part)
        else:
            joined[-1] += separator + part
    return joined


# An option of a word model, which leaves sentences with unknown words out.
_OMITS_UNKNOWN = re.compile(r"[(,]\s*unknown='omit'[,)]")


def _is_partial(sources: Sequence[str]) -> bool:
    """Tell whether some scores lack sentences of the suite, so that the hash in the signature is that of the others."""
    signed = [parse_score_signature(source) for source in sources]
    return any(
        scores.partial if scores else _OMITS_UNKNOWN.search(source)
        for scores, source in zip(signed, sources, strict=True)
    )


def _split_region(text: str) -> tuple[str | None, str]:
    """Return the options of a reduction and the region behind them; None for options that do not end in a bracket.

    >>> _split_region("()#target")
    ('()', 'target')
    """
    depth, quoted = 0, False
    for index, character in enumerate(text):
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "([") - (character in ")]")
        rest = text[index + 1 :]
        if depth == 0 and not quoted and not rest.startswith("["):
            return (text[: index + 1], rest[1:]) if not rest or rest[0] == "#" else (None, "")
    return None, ""


def _drop_tables(signature: str) -> str:
    """Return the spec in the signature of a reduction, which has the name and hash of a table behind it.

    >>> _drop_tables("exp(slor(unigrams='wordfreq:en')[wordfreq:en(floor=1e-09),per word])")
    "exp(slor(unigrams='wordfreq:en'))"
    """
    return re.sub(r"\)\[[^\]]*,per (?:word|token)\]", ")", signature)


def _parse_interval(fields: Fields) -> Bootstrap:
    return parse_bootstrap(fields.get("ci", "none").removeprefix("paired "))


def _parse_group(fields: Fields) -> str | None:
    """Return the tag of the group of a result."""
    group = fields.get("group")
    if group is None:
        return None
    return group.removeprefix("macro(").removesuffix(")") if group.startswith("macro(") else group.partition("=")[0]


def _find_measured(recomputation: Recomputation, fields: Fields, sources: Sequence[str]) -> tuple[Suite, list[Scores]]:
    """Return the suite that a result measures, and its scores."""
    by_region = needs_regions([load_measure(fields["measure"])], (), None)
    suite = recomputation.find_suite(fields["suite"], any_content=_is_partial(sources))
    return suite, [
        recomputation.find_scores(_find_whole(recomputation, suite, source), source, by_region=by_region)
        for source in sources
    ]


def _find_whole(recomputation: Recomputation, suite: Suite, source: str) -> Suite:
    """Return the suite against which scores are read: the whole one, if they are chosen by the values of tags."""
    signed = parse_score_signature(source)
    if not (signed and signed.where):
        return suite
    # Its hash is in no signature: that of the part is compared when the scores have been read.
    return recomputation.find_suite(f"{split_part_name(suite.name)[0]}#", any_content=True)


def _recompute_measure(recomputation: Recomputation, fields: Fields) -> list[Row]:
    by, bootstrap = _parse_group(fields), _parse_interval(fields)
    key = "measure", fields["measure"], fields["suite"], fields["model"], by, bootstrap

    def compute() -> list[Row]:
        suite, (scores,) = _find_measured(recomputation, fields, [fields["model"]])
        return [result.row() for result in measure(suite, scores, [fields["measure"]], by=by, bootstrap=bootstrap)]

    return [row for row in recomputation.share(key, compute) if row["group"] == fields.get("group")]


_DRAWS = re.compile(r"draws=(\d+)")
_SEED = re.compile(r"seed=(\d+)")
_UNIT = re.compile(r"\bby=([^,)]+)")


def _parse_unit(text: str) -> str:
    """Return the sampling unit in a field of a signature, which a version before did not name if it was a row.

    >>> _parse_unit("fisher-z(0.95,se=jackknife,by=item)"), _parse_unit("fisher-z(0.95,se=1/sqrt(n-3))")
    ('item', 'row')
    """
    match = _UNIT.search(text)
    return match[1] if match else SINGLE_ROWS


def _recompute_comparison(recomputation: Recomputation, fields: Fields) -> list[Row]:
    by, bootstrap = _parse_group(fields), _parse_interval(fields)
    draws, seed = (pattern.search(fields["test"]) for pattern in (_DRAWS, _SEED))
    # An interval in closed form has no seed, but random swaps have.
    bootstrap = replace(bootstrap, seed=int(seed[1])) if seed else bootstrap
    # Without an interval only the test names the sampling unit.
    if not bootstrap.resamples:
        bootstrap = replace(bootstrap, by=_parse_unit(fields["test"]))
    sources = _split_joined(fields["model"], " minus ")
    if len(sources) != 2:
        raise NotReproducible(f"the comparison is of {fields['model']}, which are not two scores with signatures")
    options: dict[str, Any] = {"by": by, "bootstrap": bootstrap, "draws": int(draws[1]) if draws else 0}
    # Corrected p values depend on all models of the comparison, of which this is one pair.
    family = _split_joined(fields["family"], " and ") if "family" in fields else sources
    options["pairs"] = fields.get("pairs", "all")
    key = "compare", fields["measure"], fields["suite"], *family, *options.values()
    pair = fields["model"] if len(family) > 2 else None

    def compute() -> list[Row]:
        suite, scores = _find_measured(recomputation, fields, family)
        return [comparison.row() for comparison in compare(suite, scores, measure=[fields["measure"]], **options)]

    rows = [row for row in recomputation.share(key, compute) if row["group"] == fields.get("group")]
    return [row for row in rows if pair in (None, parse_signature(str(row["signature"]))["model"])]


_TOST = re.compile(r"tost\(margin=(?P<margin>[^,]+),alpha=(?P<alpha>[^,]+),by=(?P<by>[^,]*),")


def _recompute_equivalence(recomputation: Recomputation, fields: Fields) -> list[Row]:
    match, sources = _TOST.match(fields["test"]), _split_joined(fields["model"], " minus ")
    if match is None or len(sources) != 2:
        raise NotReproducible(f"the test {fields['test']} of {fields['model']} has no margin, or not two models")
    suite, scores = _find_measured(recomputation, fields, sources)
    options = {name: _parse_number(match[name]) for name in ("margin", "alpha")}
    # Only tests by resampling sign the resamples; of the others, the sampling unit is all that matters.
    is_resampled = not fields["ci"].startswith("test inverted")
    by = "" if match["by"] == "row" else match["by"]
    bootstrap = _parse_interval(fields) if is_resampled else Bootstrap(by=by)
    tests = equivalence(suite, scores, [fields["measure"]], bootstrap=bootstrap, **options)
    return [test.row() for test in tests]


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SpecError(f"the signature has {text!r} where a number is expected") from error


def _recompute_correlations(recomputation: Recomputation, fields: Fields) -> list[Row]:
    options: dict[str, Any] = dict(parse_spec(fields["measure"]).options)
    options["resample_by"] = _parse_unit(fields.get("ci", ""))
    sources = _split_joined(fields["models"], " and ")
    suite = recomputation.find_suite(fields["suite"], any_content=_is_partial(sources))
    scores = [recomputation.find_scores(_find_whole(recomputation, suite, source), source) for source in sources]
    # Two columns need two names, and two models may be called alike by their specs.
    named = [replace(given, model=source) for given, source in zip(scores, sources, strict=True)]
    correlations = registry.call_factory(correlate, "correlate", [suite, named], options)
    return [correlation.row() for correlation in correlations]


def _recompute_link(recomputation: Recomputation, fields: Fields) -> list[Row]:
    options: dict[str, Any] = dict(parse_spec(fields["measure"]).options)
    suite = recomputation.find_suite(fields["suite"], any_content=_is_partial([fields["model"]]))
    model = recomputation.find_model(fields["model"])
    unigrams, kind = None, parse_spec(fields["measure"]).name
    if kind == "fit_morcela":
        reduction = parse_spec(recomputation.find_reduction(fields["reduction"]))
        unigrams = str(reduction.options.get("unigrams", ""))
    # Signatures say what the folds keep together; the function's argument has the name that all functions give it.
    options["by"] = options.pop("group", None)
    options["progress"] = recomputation.materials.progress
    # The version before had no test.
    draws = _DRAWS.search(fields.get("test", "none"))
    options["resampling"] = LinkResampling(_parse_interval(fields), int(draws[1]) if draws else 0)
    options["fit"] = kind.removeprefix("fit_")
    fits = registry.call_factory(link, kind, [suite, [model], unigrams], options)
    return [fit.row() for fit in fits.values()]


_TARGETS = re.compile(r"(?P<suite>.+)\+targets\((?P<side>\w+)\)#(?P<content>\w+)\Z", re.DOTALL)


def _recompute_contrasts(recomputation: Recomputation, fields: Fields) -> list[Row]:
    match = _TARGETS.match(fields["suite"])
    model, _, _ = recomputation.split_source(fields["model"])
    if match is None:
        raise SpecError(f"{fields['suite']} is no suite with targets")
    evaluation = evaluate_contrasts(
        # Its hash is that of the contrasts whose targets were scored, and not that of the suite.
        recomputation.find_suite(f"{match['suite']}#", any_content=True),
        recomputation.find_model(model),
        by=fields.get("by"),
        side=match["side"],
        multi_token=fields["multi_token"] == "True",
        cutoffs=fields["cutoffs"],
        bootstrap=_parse_interval(fields),
        engine=recomputation.materials.engine,
        progress=recomputation.materials.progress,
    )
    return [{**row, "signature": evaluation.signature} for row in evaluation.rows()]


def _recompute_calibration(recomputation: Recomputation, fields: Fields) -> list[Row]:
    model, _, _ = recomputation.split_source(fields["model"])
    calibration = calibrate(
        recomputation.find_suite(fields["suite"]),
        recomputation.find_model(model),
        fit=recomputation.find_suite(fields["fit"]) if "#" in fields["fit"] else None,
        method=fields["measure"].removeprefix("calibration(").removesuffix(")"),
        bins=_parse_count(fields["bins"]),
        engine=recomputation.materials.engine,
        progress=recomputation.materials.progress,
    )
    return [{**row, "signature": calibration.signature} for row in calibration.rows()]


def _parse_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise SpecError(f"the signature has {text!r} where a whole number is expected")
    return int(text)


def _recompute_scores(recomputation: Recomputation, fields: Fields) -> list[Row]:
    try:
        model, reduction, region = recomputation.split_source(fields["model"])
    except NotReproducible as error:
        raise NotReproducible(
            "the signature of scores per token, word or region does not say which: run `acceptability score` with "
            "--tokens, --words or --regions"
        ) from error
    scored = score_rows(
        recomputation.find_suite(fields["suite"]),
        recomputation.find_model(model),
        recomputation.find_reduction(reduction),
        region=region or None,
        engine=recomputation.materials.engine,
        progress=recomputation.materials.progress,
    )
    return [{**row, "signature": scored.signature} for row in scored.rows]


def _recompute_judgements(recomputation: Recomputation, fields: Fields) -> list[Row]:
    try:
        sentences = json.loads(fields["sentences"])
        context = json.loads(fields.get("context", '""'))
    except (ValueError, RecursionError) as error:
        raise SpecError(f"cannot read the sentences of the signature: {error}") from error
    if not isinstance(sentences, list) or not all(isinstance(text, str) for text in (*sentences, context)):
        raise SpecError("the sentences of the signature are no list of texts")
    model, reduction, _ = recomputation.split_source(fields["model"])
    spec, reduce = recomputation.find_model(model), recomputation.find_reduction(reduction)
    judgements = judge(sentences, model=spec, reduce=reduce, context=context, progress=recomputation.materials.progress)
    return [judgement.row() for judgement in judgements]


def _recompute_study(recomputation: Recomputation, fields: Fields) -> list[Row]:
    options = dict(parse_spec(fields["measure"]).options)
    name = str(options.pop("paper", ""))
    # Found by the registry, as every study is, since papers are above this folder.
    paper = registry.find("study", name)
    if options:
        # Files and folders of the user's, or a training, which no signature may start.
        flags = {option.name: option.list_flags()[0] for option in paper.options}
        given = " and ".join(flags.get(key, key) for key in options)
        raise NotReproducible(f"the table needs what was given by {given}: run `acceptability study {name}` with it")
    signatures = fields["models"].split(" and ") if fields.get("models") else []
    models = [recomputation.find_model(signature) for signature in signatures]

    def compute() -> list[Row]:
        cells = paper.compute(models, engine=recomputation.materials.engine, progress=recomputation.materials.progress)
        return [cell.as_row() for cell in cells]

    rows = recomputation.share(("study", fields["measure"], fields.get("models")), compute)
    return [row for row in rows if row["table"] == fields["table"]]


_RESPONSES = re.compile(r"(?P<file>.+)@(?P<content>[0-9a-f]{12})(?:\((?P<columns>.*)\))?\Z", re.DOTALL)


def _find_responses(recomputation: Recomputation, fields: Fields) -> tuple[str, dict[str, str]]:
    """Return the file of responses, or the suite that holds them, and its column mapping."""
    match = _RESPONSES.match(fields["data"])
    if match is None:
        # The answers are in the tags of a suite of the catalog.
        return recomputation.find_suite(fields["data"]).name, {}
    named = dict(part.partition("=")[::2] for part in re.split(r",(?=[^,=]+=)", match["columns"] or "") if part)
    return str(recomputation.find_file(match["file"], match["content"])), named


def _recompute_ratings(recomputation: Recomputation, fields: Fields) -> list[Row]:
    file, columns = _find_responses(recomputation, fields)
    options: dict[str, Any] = dict(parse_spec(fields["measure"]).options)
    signed = parse_score_signature(_split_joined(fields["models"], " and ")[0]) if "models" in fields else None
    scores = None
    if signed:
        path = recomputation.find_file(signed.file, signed.content)
        scores = ScoreFile(path, signed.columns[0], signed.partial, signed.where)
    suite = recomputation.find_suite(fields["suite"]) if "suite" in fields else None
    response_options = registry.call_factory(ResponseOptions, "ratings", [], {**options, "columns": columns})
    rated = build_rating_tables(file, response_options, suite=suite, scores=scores)
    return list(rated.rows())


def _recompute_choices(recomputation: Recomputation, fields: Fields) -> list[Row]:
    file, columns = _find_responses(recomputation, fields)
    return list(build_choice_tables(file, columns).rows())


def _recompute_power(recomputation: Recomputation, fields: Fields) -> list[Row]:
    simulations, seed = _parse_count(fields["n"]), _parse_count(fields["seed"])
    options = parse_spec(fields["measure"]).options
    return [
        registry.call_factory(power_from_options, "power", [options], {"simulations": simulations, "seed": seed}).row()
    ]


_KINDS: dict[str, Callable[[Recomputation, Fields], list[Row]]] = {
    "correlate": _recompute_correlations,
    "fit_morcela": _recompute_link,
    "fit_slln_lp": _recompute_link,
    "contrasts": _recompute_contrasts,
    "calibration": _recompute_calibration,
    "score": _recompute_scores,
    "judge": _recompute_judgements,
    "ratings": _recompute_ratings,
    "choices": _recompute_choices,
    "study": _recompute_study,
    "power": _recompute_power,
}
