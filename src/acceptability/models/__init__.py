"""Language models and classifiers, behind one small protocol.

A model is written ``KIND:PLACE(option=value)``, as in ``causal:gpt2(bos='<|endoftext|>')``,
or by the name of one that a package on this machine delivers, such as ``smollm2-135m``.
"""

from __future__ import annotations

from acceptability import registry
from acceptability.errors import ModelError, SpellingError, UnknownName
from acceptability.models.named import delivered
from acceptability.spelling import read_located
from acceptability.types import Model

__all__ = ["default_model", "delivered", "load_model"]


def load_model(name: str) -> Model:
    """Return the model of a name; its weights are not read before they are needed.

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
    return _opened(opener, name, place, options)


def default_model() -> str:
    """Return the name of the best model that this machine has without any download."""
    return next(name for name, each in delivered().items() if each.is_installed())


def _opened(opener: object, name: str, place: str, options: dict[str, object]) -> Model:
    try:
        model = opener(place, **options)  # type: ignore[operator]
    except TypeError as error:
        if "argument" not in str(error):
            raise
        reason = str(error).partition(") ")[2] or str(error)
        raise SpellingError(f"cannot open {name!r}: {reason}. `acceptability models` shows the options.") from error
    # Asked of the class: asking the model itself would compute its signature.
    if not all(hasattr(type(model), name) for name in ("signature", "encode", "run")):
        raise ModelError(f"{name!r} is not a model: it lacks signature, encode or run")
    return model
