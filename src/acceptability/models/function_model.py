"""Models made of a Python function: ``from_function(function, name="mine")``.

The outputs of a model are stored under its signature, and found again in later sessions. A function has no files that
could be hashed, so its signature has a hash of its source, and of what the source refers to: constants, and other
functions, whose sources are hashed in turn. Where a function uses something that no hash can describe, such as a
network in memory, the user names a version, which is then part of the signature beside the hash of the source.
"""

from __future__ import annotations

import inspect
import math
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from acceptability.errors import (
    AcceptabilityError,
    ModelError,
    QueryError,
    ScoreError,
    SpecError,
    first_error_line,
    shorten,
)
from acceptability.protocols import Model
from acceptability.specs import fingerprint, format_spec
from acceptability.types import LabelScores, ModelOutput, Query, Span, TokenScores

TokenLogprobs: TypeAlias = Sequence[tuple[str, float]]
ScoringFunction: TypeAlias = Callable[..., float | TokenLogprobs]
"""From a sentence to its score, or to its tokens with their log-probabilities (nats)."""

_NAME = re.compile(r"[\w.-]+\Z")
# Special tokens such as </s> and [SEP] stand for no character of the text.
_SPECIAL_TOKEN = re.compile(r"<[^<>\s]*>\Z|\[[A-Z]+\]\Z")
_SPACE_SIGNS = "Ġ▁ "
_LITERALS = (type(None), bool, int, float, complex, str, bytes)

# Objects other than plain functions by their signatures: two that differ in their state alone have the same source.
_taken: WeakValueDictionary[str, Any] = WeakValueDictionary()


def from_function(function: ScoringFunction, *, name: str = "", version: str = "") -> FunctionModel:
    """Return the model that a Python function is, for ``score``, ``evaluate`` and all that takes a model.

    Args:
        function: It takes a sentence and returns either its score, a number that is higher for more acceptable
            sentences, or a list of its tokens, each with its log-probability in nats: ``[("Cats", -9.1), …]``. With a
            parameter ``context`` it also gets the text before the sentence.
        name: The name in tables and signatures; it is required.
        version: What tells the function from others of this name and source: a version of yours, the name of the
            weights that it uses, … It is needed where the function uses objects that cannot be hashed.

    A score is kept as it is, as the log-odds of a classifier (0 is undecided), so that the reduction ``log_odds``
    returns it, and those of tokens (``lp``, ``slor``) are refused. Tokens with log-probabilities allow every reduction.

    Raises:
        SpecError: The name is none, or the function needs a version.

    >>> def shortness(sentence):
    ...     return -float(len(sentence))
    >>> model = from_function(shortness, name="shortness", version="1")
    >>> model.display_name, model.signature.partition(", source")[0]
    ('shortness', "function:shortness(version='1'")
    """
    if not callable(function):
        raise SpecError(f"from_function: expected a function, and this is of type {type(function).__name__}")
    if not isinstance(name, str) or not _NAME.match(name):
        raise SpecError(f"from_function: the name is {name!r}; expected letters, digits, '.', '_' and '-': name='mine'")
    if not isinstance(version, str):
        raise SpecError(f"from_function: the version is {version!r}; expected a text, such as '1'")
    model = FunctionModel(function, name, version, hash_function(function, name, is_versioned=bool(version)))
    if not isinstance(function, FunctionType):
        if _taken.get(model.signature, function) is not function:
            raise SpecError(
                f"from_function: another object has the name {name!r} and the version {version!r}; change one"
            )
        try:
            _taken[model.signature] = function
        # Some objects, such as those with slots, cannot be referred to weakly.
        except TypeError:
            return model
    return model


@dataclass(frozen=True)
class FunctionQuery:
    """A query as the function gets it."""

    query: Query

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.query.text.split()) or 1


@dataclass(frozen=True, repr=False)
class FunctionModel(Model):
    """A model that calls a Python function for each sentence.

    Args:
        function: The function.
        name: Its name in tables and signatures.
        version: The version that the user gave, or nothing.
        source: A hash of the source.
    """

    function: ScoringFunction
    name: str
    version: str
    source: str

    def __repr__(self) -> str:
        return f"FunctionModel({self.signature})"

    @property
    def signature(self) -> str:
        """The name, the version if there is one, and the hash of the source."""
        version = {"version": self.version} if self.version else {}
        return format_spec(f"function:{self.name}", {**version, "source": self.source})

    @property
    def display_name(self) -> str:
        """The name in tables."""
        return self.name

    @property
    def budget(self) -> int:
        """The words in a batch; small, since a function of one's own may be slow and a killed run loses a batch."""
        return 256

    def encode(self, queries: Sequence[Query]) -> list[FunctionQuery]:
        """Return the queries; raise QueryError for a context, region or rival that the function does not take."""
        # A global that the function reads, such as a table of weights, may have another value by now.
        if hash_function(self.function, self.name, is_versioned=bool(self.version)) != self.source:
            raise ModelError(f"{self.name}: what the function refers to has changed; call from_function again")
        for index, query in enumerate(queries):
            if query.context and not self._takes_context:
                raise QueryError(index, "it has a context, which the function does not take: add a parameter context")
            if query.target or query.rival:
                raise QueryError(index, "a function scores whole sentences, neither regions nor pairs")
        return [FunctionQuery(query) for query in queries]

    @property
    def _takes_context(self) -> bool:
        try:
            return "context" in inspect.signature(self.function).parameters
        # Functions written in C may have no signature.
        except ValueError:
            return False

    def run(self, batch: Sequence[FunctionQuery]) -> list[ModelOutput]:
        """Return what the function says of each sentence."""
        return [self._call(encoded.query) for encoded in batch]

    def _call(self, query: Query) -> ModelOutput:
        options = {"context": query.context} if self._takes_context else {}
        try:
            answer: Any = self.function(query.text, **options)
        # Ours say themselves what to do, and the engine answers to a lack of memory.
        except (AcceptabilityError, MemoryError):
            raise
        except Exception as error:
            raise ModelError(
                f"{self.name}: for {shorten(query.text)!r} the function raised {type(error).__name__}: "
                f"{first_error_line(error)}"
            ) from error
        where = f"{self.name}: for {shorten(query.text)!r} the function returned"
        if isinstance(answer, list | tuple):
            return _read_tokens(query.text, answer, where)
        # A truth value is a number in Python, and a text of digits can be converted to one; neither is a score.
        if isinstance(answer, bool | str | bytes | type(None)):
            raise ModelError(f"{where} {answer!r}; expected a number, or a list of (token, log-probability)")
        try:
            number = float(answer)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{where} {type(answer).__name__}; expected a number, or a list of pairs") from error
        if not math.isfinite(number):
            raise ScoreError(
                f"{self.name}: the function gave a score that is not finite for {shorten(query.text)!r}: {number}"
            )
        return LabelScores(query.text, (0.0, number))


def _read_tokens(text: str, answer: Sequence[Any], where: str) -> TokenScores:
    """Return the token scores of a list of (token, log-probability), with the place of each token in the text."""
    tokens, offsets, logprobs = [], [], []
    position = 0
    for pair in answer:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ModelError(f"{where} {pair!r} in its list; expected (token, log-probability)")
        token, logprob = pair[0], float(pair[1])
        if not -math.inf < logprob <= 1e-6:
            raise ModelError(f"{where} {logprob} for the token {token!r}; a log-probability is finite and not above 0")
        span = _find_token(text, token, position)
        if span is None:
            raise ModelError(f"{where} the token {token!r}, which does not follow in the text at character {position}")
        tokens.append(token)
        offsets.append(span)
        logprobs.append(logprob)
        position = span[1]
    return TokenScores(text, tuple(tokens), tuple(offsets), np.array(logprobs, np.float32))


def _find_token(text: str, token: str, position: int) -> Span | None:
    """Return where the next token stands, after spaces at most; an empty span for a special token."""
    bare = token.strip(_SPACE_SIGNS)
    start = position
    while start < len(text) and text[start].isspace():
        start += 1
    if bare and text.startswith(bare, start):
        return start, start + len(bare)
    return (position, position) if not bare or _SPECIAL_TOKEN.match(token) else None


def hash_function(function: Any, name: str, *, is_versioned: bool) -> str:
    """Return a hash of the source of a function, and of all that it refers to.

    Args:
        function: The function, or another callable object.
        name: Its name, for the error.
        is_versioned: Whether a version of the user's tells apart what a hash of the source cannot.

    Raises:
        SpecError: The function refers to what cannot be hashed, and has no version.
    """
    parts = list(_iterate_parts(function, name, is_versioned, set()))
    return fingerprint([part.encode("utf-8", "surrogatepass") for part in parts])


def _iterate_parts(function: Any, name: str, is_versioned: bool, seen: set[int]) -> Iterator[str]:
    if not isinstance(function, FunctionType):
        if not is_versioned:
            raise _make_version_error(name, f"it is an object of the class {type(function).__name__}")
        yield _read_source(type(function)) or f"{type(function).__module__}.{type(function).__qualname__}"
        return
    if id(function) in seen:
        return
    seen.add(id(function))
    # The source of a lambda is its whole line, which may hold a second one, so its code is hashed instead.
    source = None if function.__name__ == "<lambda>" else _read_source(function)
    yield source or f"{sys.version_info[:2]}{_describe_code(function.__code__)}"
    if is_versioned:
        return
    for reference, value in _list_references(function).items():
        yield f"{reference}="
        yield from _describe_value(value, reference, name, seen)


def _list_references(function: FunctionType) -> dict[str, Any]:
    """Return what a function refers to from outside: defaults, variables of the functions around it, and globals."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    outer = {variable: cell.cell_contents for variable, cell in cells}
    names = dict.fromkeys(_iterate_names(function.__code__))
    read = {name: function.__globals__[name] for name in names if name in function.__globals__}
    return {"defaults": function.__defaults__, "keywords": function.__kwdefaults__, **read, **outer}


def _iterate_names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals (and of attributes) in code, and in functions defined within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iterate_names(constant)


def _describe_value(value: Any, reference: str, name: str, seen: set[int]) -> Iterator[str]:
    """Yield what describes a value that a function refers to."""
    if isinstance(value, _LITERALS):
        yield repr(value)
    elif type(value) in (tuple, list):
        for item in value:
            yield from _describe_value(item, reference, name, seen)
        yield f"{type(value).__name__} of {len(value)}"
    elif type(value) in (set, frozenset) and all(isinstance(item, _LITERALS) for item in value):
        # Sets have another order in each process.
        yield repr(sorted(map(repr, value)))
    elif type(value) is dict:
        for key, item in value.items():
            yield from _describe_value(key, reference, name, seen)
            yield from _describe_value(item, reference, name, seen)
        yield f"dict of {len(value)}"
    elif isinstance(value, ModuleType) and _is_installed(value.__name__):
        yield _name_installed(value.__name__)
    elif _is_installed(getattr(value, "__module__", None) or "") and isinstance(
        value, FunctionType | BuiltinFunctionType | type
    ):
        yield f"{_name_installed(value.__module__)}:{value.__qualname__}"
    elif isinstance(value, FunctionType):
        yield from _iterate_parts(value, name, False, seen)
    else:
        raise _make_version_error(name, f"it uses {reference!r}, which is of type {type(value).__name__}")


def _make_version_error(name: str, why: str) -> SpecError:
    return SpecError(
        f"from_function: {name} needs a version, since {why} and cannot be hashed: from_function(…, name={name!r}, "
        "version='1'). Change it whenever the function gives other scores."
    )


def _is_installed(module: str) -> bool:
    """Tell whether a module is of Python itself or of an installed package, and not a file of the user's."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return True
    # The file of the main module may be that of an installed program, such as pytest or Jupyter.
    if top == "__main__":
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    folders = {*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")}
    return bool(file) and any(Path(str(file)).is_relative_to(folder) for folder in folders)


def _name_installed(module: str) -> str:
    """Return the name of an installed module with the version of its package."""
    top: Any = sys.modules.get(module.partition(".")[0])
    return f"{module} {getattr(top, '__version__', '')}"


def _read_source(described: Any) -> str | None:
    try:
        return inspect.getsource(described)
    # OSError for what was typed into an interpreter, TypeError for a class without a file.
    except (OSError, TypeError):
        return None


def _describe_code(code: CodeType) -> str:
    """Return a text that differs for code that does something else."""
    constants = [
        _describe_code(constant) if isinstance(constant, CodeType) else repr(constant) for constant in code.co_consts
    ]
    shape: Mapping[str, Any] = {
        "code": code.co_code.hex(),
        "names": code.co_names,
        "variables": code.co_varnames,
        "free": code.co_freevars,
    }
    return f"{shape} {constants}"
