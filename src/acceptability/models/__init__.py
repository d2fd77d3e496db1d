"""Language models and classifiers, behind one small protocol.

A model is written ``KIND:PLACE(option=value)``, as in ``causal:gpt2(bos='<|endoftext|>')``,
or by the name of one that a package on this machine delivers, such as ``smollm2-135m``.
"""

from __future__ import annotations

from inspect import signature
from weakref import WeakValueDictionary

from acceptability import registry
from acceptability.errors import SpellingError, UnknownName
from acceptability.models.named import delivered
from acceptability.protocols import Model
from acceptability.spelling import read_located, write

_in_use: WeakValueDictionary[tuple[str, str], Model] = WeakValueDictionary()

__all__ = ["default_model", "delivered", "in_precision", "load_model"]


def load_model(name: str) -> Model:
    """Return the model of a name; its weights are not read before they are needed, nor twice while in use.

    >>> load_model("uniform").signature
    'uniform(vocabulary=50000)'
    """
    kind, place, options = read_located(name)
    named = {key: each for key, each in delivered().items() if key not in registry.names("model")}
    if not place and kind in named:
        if options:
            raise SpellingError(f"{kind!r} takes no options: its name stands for them too")
        return load_model(named[kind].spelling())
    try:
        opener = registry.find("model", kind)
    except UnknownName:
        known = [*registry.names("model"), *named]
        hint = "`acceptability models` lists the kinds and the named ones."
        raise UnknownName("model", name if not place else kind, known, hint=hint) from None
    model: Model = registry.build(opener, name, [place], options)
    return _in_use.setdefault((name, model.signature), model)


def in_precision(name: str, dtype: str) -> str:
    """Return the spelling of a model in a precision.

    >>> in_precision("causal:gpt2(bos=None)", "bfloat16")
    "causal:gpt2(bos=None, dtype='bfloat16')"
    """
    kind, place, options = read_located(name)
    if not place and kind in delivered() and kind not in registry.names("model"):
        return in_precision(delivered()[kind].spelling(), dtype)
    if "dtype" not in signature(registry.find("model", kind)).parameters:
        raise SpellingError(f"{name}: a model of the kind {kind!r} has no precision to choose; leave dtype away")
    if options.get("dtype", dtype) != dtype:
        raise SpellingError(f"{name} says dtype={options['dtype']!r} itself, and {dtype!r} was asked for: say it once")
    return write(f"{kind}:{place}", options | {"dtype": dtype})


def default_model() -> str:
    """Return the name of the best model that this machine has without any download."""
    return next(name for name, each in delivered().items() if each.is_installed())
