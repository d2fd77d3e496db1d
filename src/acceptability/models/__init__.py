"""Language models and classifiers, behind one small protocol.

A model is written ``KIND:PLACE(option=value)``, as in ``causal:gpt2(bos='<|endoftext|>')``,
or by the name of one that a package on this machine delivers, such as ``smollm2-135m``.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from acceptability import registry
from acceptability.errors import SpellingError, UnknownName
from acceptability.models.named import delivered
from acceptability.protocols import Model
from acceptability.spelling import read_located

_in_use: WeakValueDictionary[tuple[str, str], Model] = WeakValueDictionary()

__all__ = ["default_model", "delivered", "load_model"]


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


def default_model() -> str:
    """Return the name of the best model that this machine has without any download."""
    return next(name for name, each in delivered().items() if each.is_installed())
