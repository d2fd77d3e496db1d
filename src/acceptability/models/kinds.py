"""The kind of a model that is named without one: ``gpt2``, ``./folder``, ``owner/name@revision``.

The kind is read from what describes the model: the ``recipe.json`` of a folder that this package trained, the
``config.json`` of a transformer or the ``adapter_config.json`` of an adapter, in a folder or on the Hugging Face Hub.
No weights are read, and of the Hub only that one file. Files are GGUF checkpoints or n-gram models. What was found is
logged.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.errors import MissingExtra, ModelError, UnknownName, first_error_line
from acceptability.models import list_named_models
from acceptability.models.files import is_importable
from acceptability.specs import parse_model_spec

_log = logging.getLogger(__name__)

# How alike names are that differ by a slip: 0.92 for "trigam" and "trigram", but 0.5 for "opt-125m" and "smollm2-135m".
_SLIP = 0.8
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z")
# A kind before a colon; a single letter is a drive of Windows.
_KIND = re.compile(r"[A-Za-z][\w-]+\Z")
_CONFIG_FILE, _ADAPTER_FILE, _RECIPE_FILE = "config.json", "adapter_config.json", "recipe.json"
# Only what a folder of this package does not say by a config.json of its own.
_RECIPE_KINDS = {
    "ngram": "ngram",
    "varikn": "ngram",
    "aggregate-markov": "aggregate-markov",
    "rnn": "recurrent",
    "lstm": "recurrent",
    "qrnn": "recurrent",
    "cbow": "classifier",
    "pooling": "classifier",
}
# How the classes of transformers end, by what they compute.
_ARCHITECTURES = (
    (r"ForSequenceClassification\Z", "classifier"),
    (r"ForMaskedLM\Z|(?:^Bert|Albert|Ernie)ForPreTraining\Z|WithLMHeadModel\Z", "masked"),
    (r"ForCausalLM\Z|LMHeadModel\Z", "causal"),
)
_ADAPTER_TASKS = {"CAUSAL_LM": "causal", "SEQ_2_SEQ_LM": "seq2seq", "SEQ_CLS": "classifier"}
_DESCRIPTIONS = {
    "causal": "a causal language model",
    "masked": "a masked language model",
    "seq2seq": "an encoder-decoder",
    "classifier": "a classifier",
    "ngram": "an n-gram model",
    "aggregate-markov": "an aggregate Markov model",
    "recurrent": "a recurrent language model",
}
_KINDS_HINT = "Write its kind before it, such as causal:{0} or masked:{0}; `acceptability models` lists the kinds"

_ReadConfig = Callable[[str], Mapping[str, Any] | None]


def complete_model_spec(name: str) -> str:
    """Return the spec of a model with its kind; one that has a kind, and the name of a model, stay as they are.

    Args:
        name: A spec, a name, or the folder, file or id on the Hub of a model, perhaps with options.

    >>> complete_model_spec("trigram(unknown='omit')"), complete_model_spec("causal:gpt2")
    ("trigram(unknown='omit')", 'causal:gpt2')
    """
    # Behind a kind, any text is a location, perhaps followed by options.
    _, location, _ = parse_model_spec(f"any:{name.strip()}")
    kind, colon, _ = location.partition(":")
    if (colon and _KIND.match(kind)) or location in (*list_named_models(), *registry.names("model")):
        return name
    found, reason = _find_kind(location)
    _log.info("%s is %s (%s); it is opened as %s:%s", location, _DESCRIPTIONS[found], reason, found, name.strip())
    return f"{found}:{name.strip()}"


def _find_kind(location: str) -> tuple[str, str]:
    """Return the kind of the model at a location, and what says so."""
    path = Path(location).expanduser()
    if path.is_dir():
        return _read_kind(location, lambda file: _read_json(path / file))
    if path.is_file():
        return ("causal", "a GGUF file") if path.suffix.lower() == ".gguf" else ("ngram", "a single file")
    known = [*registry.names("model"), *list_named_models()]
    hint = "`acceptability models` lists the kinds of models and the named models."
    hub_id, _, revision = location.partition("@")
    is_path = location.startswith((".", "/", "~")) or not _HUB_ID.match(hub_id)
    # A slip in the name of a model of ours is not asked of the Hub, where a stranger's model may have it.
    if is_path or get_close_matches(hub_id, known, cutoff=_SLIP):
        message = f"{location}: there is no such folder or file, and it is no id on the Hugging Face Hub"
        raise ModelError(message) if is_path else UnknownName("model", location, known, hint=hint)
    return _read_kind(location, lambda file: _read_hub_json(hub_id, revision or None, file))


def _read_kind(location: str, read_config: _ReadConfig) -> tuple[str, str]:
    recipe = read_config(_RECIPE_FILE) if Path(location).expanduser().is_dir() else None
    if recipe and (kind := _RECIPE_KINDS.get(str(recipe.get("kind")))):
        return kind, f"trained as {recipe['kind']}, by its {_RECIPE_FILE}"
    if config := read_config(_CONFIG_FILE):
        return _classify(location, config)
    if adapter := read_config(_ADAPTER_FILE):
        task, base = str(adapter.get("task_type")), adapter.get("base_model_name_or_path")
        if task in _ADAPTER_TASKS:
            return _ADAPTER_TASKS[task], f"an adapter, {task} by its {_ADAPTER_FILE}"
        raise ModelError(
            f"{location}: its {_ADAPTER_FILE} says neither which task the adapter is for nor what kind of model "
            f"{base!r} is. {_KINDS_HINT.format(location)}"
        )
    raise ModelError(
        f"{location}: no model of a known kind, since it has no {_CONFIG_FILE}, {_ADAPTER_FILE} or {_RECIPE_FILE}. "
        f"{_KINDS_HINT.format(location)}"
    )


def _classify(location: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a model by its configuration, and the architecture that it names.

    >>> _classify("gpt2", {"architectures": ["GPT2LMHeadModel"]})
    ('causal', 'GPT2LMHeadModel by its config.json')
    """
    named = config.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else ""
    reason = f"{architecture or config.get('model_type')} by its {_CONFIG_FILE}"
    for pattern, kind in _ARCHITECTURES:
        # The decoder of an encoder-decoder is a causal model of its own only if the configuration says so.
        if re.search(pattern, architecture) and not (kind == "causal" and config.get("is_encoder_decoder")):
            return kind, reason
    if config.get("is_encoder_decoder") is True:
        return "seq2seq", reason
    raise ModelError(
        f"{location}: its {_CONFIG_FILE} names {architecture or 'no architecture'}, which does not say whether it is a "
        f"language model or a classifier. {_KINDS_HINT.format(location)}"
    )


def _read_json(path: Path) -> Mapping[str, Any] | None:
    """Return the content of a configuration, None if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot read {path}: {first_error_line(error)}") from error
    if not isinstance(content, dict):
        raise ModelError(f"cannot read {path}: expected an object of JSON")
    return content


def _read_hub_json(name: str, revision: str | None, file: str) -> Mapping[str, Any] | None:
    """Return the content of a file on the Hub, None if the repository has no such file."""
    if not is_importable("huggingface_hub"):
        raise MissingExtra(f"the model {name}", "transformers and huggingface_hub", "'acceptability[neural]'")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        return _read_json(Path(hf_hub_download(name, file, revision=revision)))
    # Of a Hub that cannot be reached, LocalEntryNotFoundError is raised, which is an EntryNotFoundError too.
    except (LocalEntryNotFoundError, HFValidationError, OSError, RuntimeError) as error:
        if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
            return None
        if isinstance(error, HfHubHTTPError) and error.response is not None:
            reason = f"the Hugging Face Hub answers: {first_error_line(error)}"
        else:
            reason = "it was not downloaded before, and the Hugging Face Hub cannot be reached"
        raise ModelError(
            f"{name}: there is no model or folder of that name here; {reason}. "
            "`acceptability models` lists the models that need no download"
        ) from error
