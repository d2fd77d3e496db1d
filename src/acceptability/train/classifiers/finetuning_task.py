"""How the recipe ``transformer`` trains: the pretrained network, its head, the training task, the saved classifier.

``fine_tune_classifier`` runs from top to bottom: load a language model with a new head of two labels, tokenize the
sentences, find out which hidden states the head pools, train with ``train.trainer`` (all weights, or the head alone on
cached hidden states), save the weights with the best MCC on the held-out sentences, and evaluate the saved folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from acceptability.errors import ModelError, SpecError, TrainError, first_error_line, shorten
from acceptability.measures.classification import matthews
from acceptability.models import list_named_models
from acceptability.models.hf.adapters import hide_adapter
from acceptability.models.hf.classifier import Classifier, ClassifierEncoding, open_model
from acceptability.models.hf.loading import (
    Checkpoint,
    convert_out_of_memory,
    find_checkpoint,
    hide_progress_bars,
    pad_rows,
)
from acceptability.specs import parse_model_spec
from acceptability.train.classifiers.recipe import EpochBatches, FitResult, LabelledSentences
from acceptability.train.recipe import CheckpointedRun, TrainingProgress, TrainingProgressCallback
from acceptability.train.trainer import (
    SingleProcess,
    TrainingResult,
    TrainingSchedule,
    TrainingTask,
    constant_then_linear,
    train_network,
)
from acceptability.types import Query

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuning import FineTuningRecipe

ACCEPTABILITY_LABELS = ("unacceptable", "acceptable")
OTHER_POOLING = "in a way of its own"
_MODEL_KINDS = ("causal", "masked", "classifier")
_SPECIAL_TOKEN_OPTIONS = ("bos", "eos")
# Options of a language model's spec that change how it scores, but neither its weights nor its tokens. They are
# accepted and ignored, since the specs of named models such as mini-masked have them.
_SCORING_OPTIONS = ("variant", "dtype", "device", "spaces")
_DROPOUT_NAME = re.compile(r"dropout|pdrop")
_CONFIG_POOLING = {"first": "cls", "mean": "mean"}
_EVAL_BATCH_SIZE = 64
LogitsFunction = Callable[[Any, Sequence[int]], Tensor]
"""From a network and the indices of some sentences to the logits of both labels."""


def fine_tune_classifier(
    recipe: FineTuningRecipe,
    train_set: LabelledSentences,
    held_out_set: LabelledSentences,
    out: Path,
    run: CheckpointedRun,
) -> FitResult:
    """Fine-tune a network, save the weights that are best on the held-out sentences, and evaluate them."""
    pretrained = load_pretrained(recipe)
    # A limit beyond the model's own would index position embeddings that do not exist.
    max_length = min(recipe.max_length or pretrained.files.max_length, pretrained.files.max_length)
    train_rows, held_out_rows = (
        tokenize_sentences(sentences, pretrained.tokenizer, max_length, truncate=recipe.truncate)
        for sentences in (train_set, held_out_set)
    )
    pooling = detect_pooling(pretrained.net, train_rows.longest_row, pretrained.pad_token_id)
    # Only a head that pools the last token searches for the end of a sentence.
    if pooling not in ("first", "mean"):
        check_final_tokens(train_rows, train_set, pretrained.pad_token_id)
        check_final_tokens(held_out_rows, held_out_set, pretrained.pad_token_id)
    _check_pooling(recipe, pretrained, pooling)
    # Imported here, since that module trains its network with the functions of this one.
    from acceptability.train.classifiers.intermediate import train_intermediate_task

    device = resolve_device(recipe.device)
    with convert_out_of_memory(f"{pretrained.files.name}: batch_size={recipe.batch_size}"):
        intermediate_facts = train_intermediate_task(recipe, pretrained, device, run) if recipe.intermediate else {}
        result = train_with_held_out(recipe, pretrained, train_rows, held_out_rows, device, run)
    facts = _collect_facts(pretrained, train_rows, held_out_rows, result)
    _save_classifier(recipe, pretrained, out)
    return FitResult(
        {"pooling": pooling, **intermediate_facts, **facts}, _evaluate_saved(out, held_out_set, held_out_rows, device)
    )


def resolve_device(name: str) -> torch.device:
    """Return the device of a name; ``auto`` is a GPU if there is one."""
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        # torch.device accepts names of devices that do not exist; only an allocation shows it.
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise TrainError(f"the device {name!r} cannot be used here: {first_error_line(error)}") from error
    return device


@dataclass(frozen=True)
class PretrainedNetwork:
    """A pretrained language model with a head that is not trained yet.

    Args:
        new_weights: The names of the weights that the checkpoint does not have and that are initialised at random: the
            head, or a part of it.
    """

    files: Checkpoint
    tokenizer: Any
    net: Any
    new_weights: frozenset[str]

    @property
    def pad_token_id(self) -> int:
        """The token that pads the shorter rows of a batch."""
        return int(self.net.config.get_text_config().pad_token_id)


def load_pretrained(recipe: FineTuningRecipe) -> PretrainedNetwork:
    """Return the network that a recipe starts from; the head is initialised with the recipe's seed."""
    kind, location, options = locate_pretrained(recipe.model)
    files = find_checkpoint(kind, location, allow_pickle=bool(options.get("allow_pickle", False)))
    if files.adapter:
        raise TrainError(
            f"{files.name} has an adapter, in {files.adapter.folder}: fine-tuning starts from whole weights; merge it"
        )
    config, tokenizer = files.config, files.tokenizer
    _set_special_tokens(tokenizer, _find_start_token(kind, options, tokenizer), bool(options.get("eos", False)))
    if config.is_encoder_decoder:
        raise TrainError(f"{files.name} has an encoder and a decoder; this recipe takes models that have one of them")
    _set_pad_token(config, tokenizer, files.name)
    _configure_classifier(config, recipe)
    # from_pretrained initialises the head from torch's global generator: its state is restored afterwards, so that a
    # training leaves the random numbers of its caller alone.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        net, new_weights = _load_with_head(files, config)
    return PretrainedNetwork(files, tokenizer, net, new_weights)


def locate_pretrained(model: str) -> tuple[str, str, Mapping[str, object]]:
    """Return kind, location and options of the model to fine-tune; a bare location has no options."""
    if model in list_named_models():
        model = list_named_models()[model].make_spec()
    kind, colon, _ = model.partition(":")
    # A path may contain a colon itself.
    if not colon or Path(model).expanduser().exists():
        return "transformer", model, {}
    kind, location, options = parse_model_spec(model)
    if kind not in _MODEL_KINDS:
        raise TrainError(
            f"{model} is no transformer; give a folder, a name on the Hub, or a spec of the kind "
            f"{', '.join(_MODEL_KINDS[:-1])} or {_MODEL_KINDS[-1]}"
        )
    unknown = [name for name in options if name not in (*_SPECIAL_TOKEN_OPTIONS, *_SCORING_OPTIONS, "allow_pickle")]
    if unknown:
        raise SpecError(f"{model}: {', '.join(unknown)} has no meaning here; bos, eos and allow_pickle have")
    return kind, location, options


def _find_start_token(kind: str, options: Mapping[str, object], tokenizer: Any) -> str | None:
    """Return the token that precedes a causal model's texts; None where the tokenizer adds its own special tokens."""
    if kind != "causal":
        return None
    token = options.get("bos", tokenizer.bos_token)
    return str(token) if token is not None else None


def _set_special_tokens(tokenizer: Any, start_token: str | None, add_end: bool) -> None:
    """Make a tokenizer put a start token before every text, and an end token after it, unless it already does."""
    from tokenizers.processors import TemplateProcessing

    # What the tokenizer adds by itself is read off a text of one letter: classes of tokenizers differ in the settings
    # that determine it.
    encoded = tokenizer("a", return_special_tokens_mask=True)
    special_mask, names = encoded["special_tokens_mask"], tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    first, last = special_mask.index(0), len(special_mask) - special_mask[::-1].index(0)
    before, after = names[:first], names[last:]
    if start_token and before[:1] != [start_token]:
        before = [start_token, *before]
    if add_end and after[-1:] != [tokenizer.eos_token]:
        after = [*after, tokenizer.eos_token]
    if (before, after) == (names[:first], names[last:]):
        return
    token_ids = {name: tokenizer.convert_tokens_to_ids(name) for name in {*before, *after}}
    if missing := [name for name in token_ids if name is None or name not in tokenizer.get_vocab()]:
        raise ModelError(f"the tokenizer has no token {missing[0]!r} to frame a text with; choose another bos or eos")
    # The post-processor is saved in tokenizer.json, so that the classifier's folder needs no code to add the tokens.
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=[*before, "$A", *after], special_tokens=sorted(token_ids.items())
    )


def _set_pad_token(config: Any, tokenizer: Any, name: str) -> None:
    """Set one padding token for tokenizer and network: the tokenizer's, the network's, or else the end token."""
    text_config = config.get_text_config()
    for token_id in (tokenizer.pad_token_id, text_config.pad_token_id, tokenizer.eos_token_id):
        # A padding token beyond the embedding matrix (some tokenizers define one) would crash the network.
        if token_id is not None and 0 <= token_id < text_config.vocab_size:
            config.pad_token_id = text_config.pad_token_id = token_id
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(token_id)
            return
    raise TrainError(f"{name} has neither a padding token nor an end token: name a pad_token in tokenizer_config.json")


def _configure_classifier(config: Any, recipe: FineTuningRecipe) -> None:
    """Write labels, pooling and dropout into a network's configuration."""
    config.id2label = dict(enumerate(ACCEPTABILITY_LABELS))
    config.label2id = {name: number for number, name in enumerate(ACCEPTABILITY_LABELS)}
    # Otherwise transformers infers the kind of problem from the first labels that the network is given.
    config.problem_type = "single_label_classification"
    if hasattr(config, "classifier_pooling") and recipe.pooling in ("auto", *_CONFIG_POOLING):
        config.classifier_pooling = _CONFIG_POOLING.get(recipe.pooling, "cls")
    # Architectures name their dropout rates differently (hidden_dropout_prob, attn_pdrop, …), hence the pattern.
    # classifier_dropout is None where the head takes the rate of the body.
    for name, value in list(vars(config).items()):
        if _DROPOUT_NAME.search(name) and (value is None or type(value) in (int, float)):
            setattr(config, name, recipe.dropout)


def _load_with_head(files: Checkpoint, config: Any) -> tuple[Any, frozenset[str]]:
    """Return the network with a classification head, and the names of the weights that are new."""
    from transformers import AutoModelForSequenceClassification

    net, new_weights = load_network(AutoModelForSequenceClassification, files, config)
    return net, frozenset(_find_head_weights(files, net, new_weights))


def load_network(auto_class: Any, files: Checkpoint, config: Any) -> tuple[Any, set[str]]:
    """Return a network of one of transformers' auto classes, and the names of the weights that its files lack."""
    from safetensors import SafetensorError

    load_options: dict[str, Any] = {"gguf_file": files.gguf} if files.gguf else {}
    # Unpickling runs code from the file: it needs the user's consent (allow_pickle).
    if not files.gguf and not files.trust.pickle:
        load_options["use_safetensors"] = True
    try:
        # transformers opens an adapter that lies beside the weights, and the base model that it names.
        with hide_progress_bars(), hide_adapter(files.folder) as folder:
            net, info = auto_class.from_pretrained(
                folder,
                config=config,
                # Float32 even if the checkpoint is in half precision, where small updates would be lost in rounding.
                dtype=torch.float32,
                # find_checkpoint has already fetched the files, and checked that they are safe to open.
                local_files_only=True,
                trust_remote_code=False,
                # A checkpoint that is itself a classifier may have another number of labels: its head is replaced.
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                **load_options,
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"cannot fine-tune {files.name} in {files.folder}: {first_error_line(error)}") from error
    return net, {*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}


def _find_head_weights(files: Checkpoint, net: Any, new_weights: set[str]) -> set[str]:
    """Return the names of the head's weights; a checkpoint that lacks weights of the body is refused."""
    # A pooler belongs to the body by name, but language models are often saved without one.
    missing_body = [
        name for name in sorted(new_weights) if name.startswith(f"{net.base_model_prefix}.") and ".pooler." not in name
    ]
    if missing_body:
        raise ModelError(f"{files.name} has no weights for {', '.join(missing_body[:3])}: it is not a pretrained model")
    # The output layer is trained even if the checkpoint has one of the right size: it may be that of another task.
    head_names = [name for name, _ in net.named_parameters() if not name.startswith(f"{net.base_model_prefix}.")]
    output_layer = head_names[-1].rpartition(".")[0]
    return new_weights | {name for name in head_names if name.startswith(f"{output_layer}.")}


@dataclass(frozen=True)
class TokenizedSentences:
    """Sentences as rows of tokens.

    Args:
        truncated_count: How many sentences were longer than the model reads.
    """

    token_ids: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]
    truncated_count: int

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of every row."""
        return [len(row) for row in self.token_ids]

    @property
    def longest_row(self) -> tuple[int, ...]:
        """The row with the most tokens."""
        return max(self.token_ids, key=len)

    def batches_by_length(self) -> Iterator[list[int]]:
        """Yield the indices of all rows in batches of similar length, for evaluation with little padding."""
        order = sorted(range(len(self)), key=lambda index: len(self.token_ids[index]))
        for start in range(0, len(order), _EVAL_BATCH_SIZE):
            yield order[start : start + _EVAL_BATCH_SIZE]


def tokenize_sentences(
    labelled: LabelledSentences, tokenizer: Any, max_length: int, *, truncate: bool
) -> TokenizedSentences:
    """Return sentences with the tokenizer's special tokens; one that is too long is truncated or an error."""
    # Not verbose: the tokenizer would warn of sentences that are too long, which are handled below.
    encoded = tokenizer(list(labelled.texts), verbose=False)["input_ids"]
    too_long = [index for index, ids in enumerate(encoded) if len(ids) > max_length]
    if too_long and not truncate:
        sentence = labelled.sentences[too_long[0]]
        raise TrainError(
            f"{sentence.id}: {shorten(sentence.text)!r} has {len(encoded[too_long[0]])} tokens, and {max_length} are "
            f"read at most ({len(too_long)} sentences are longer). Set max_length=… higher if the model can read more, "
            "or truncate=true."
        )
    if too_long:
        # Truncation is left to the tokenizer, which keeps the final special token.
        encoded = tokenizer(list(labelled.texts), truncation=True, max_length=max_length, verbose=False)["input_ids"]
    return TokenizedSentences(tuple(map(tuple, encoded)), labelled.labels, len(too_long))


def check_final_tokens(rows: TokenizedSentences, labelled: LabelledSentences, pad_token_id: int) -> None:
    """Refuse sentences that end with the padding token.

    A head that pools the last token finds it as the last one that is not padding, and would read the one before.
    """
    for ids, sentence in zip(rows.token_ids, labelled.sentences, strict=True):
        if ids[-1] == pad_token_id:
            raise TrainError(
                f"{sentence.id} ends with the token for padding ({pad_token_id}), so that its end cannot be found. "
                "Give the tokenizer a pad_token of its own."
            )


def detect_pooling(net: Any, row: Sequence[int], pad_token_id: int) -> str:
    """Return which hidden states the head pools: ``first``, ``last``, ``mean`` of all, or ``OTHER_POOLING``.

    It is not looked up by architecture but measured: random hidden states replace the body's, and the pooled ones are
    those for which the logit has a gradient. The row is padded, so that a head that pools padding is noticed.
    """
    if not is_head_separable(net, row, pad_token_id):
        return OTHER_POOLING
    # Padded together with a longer row, then alone: the first row keeps its two tokens of padding.
    ids, mask = pad_rows([row, [*row, pad_token_id, pad_token_id]], pad_token_id)
    ids, mask = ids[:1], mask[:1]
    width = net.config.get_text_config().hidden_size
    # A generator of its own, so that the detection leaves the global one alone.
    states = torch.randn(1, ids.shape[1], width, generator=torch.Generator().manual_seed(0), requires_grad=True)
    with use_cached_states(net) as cached_body:
        cached_body.states = states
        logits = net.eval()(input_ids=ids, attention_mask=mask).logits
    (gradient,) = torch.autograd.grad(logits[0, 1], states)
    token_indices = gradient[0].abs().sum(-1).nonzero().flatten().tolist()
    indices_by_pooling = {"first": [0], "last": [len(row) - 1], "mean": list(range(len(row)))}
    return next((name for name, indices in indices_by_pooling.items() if indices == token_indices), OTHER_POOLING)


def is_head_separable(net: Any, row: Sequence[int], pad_token_id: int) -> bool:
    """Return whether the head gives the same logits from cached hidden states as on top of the body."""
    ids, mask = pad_rows([row], pad_token_id)
    with torch.no_grad():
        full_logits = net.eval()(input_ids=ids, attention_mask=mask).logits
        states = compute_hidden_states(net, [row], pad_token_id)
        with use_cached_states(net) as cached_body:
            cached_body.states = states[0].unsqueeze(0)
            try:
                head_logits = net(input_ids=ids, attention_mask=mask).logits
            except (RuntimeError, TypeError, AttributeError):  # a head that needs more from the body than states
                return False
    # Not exact: the two forward passes may round differently.
    return head_logits.shape == full_logits.shape and bool(
        torch.allclose(head_logits, full_logits, atol=1e-4, rtol=1e-3)
    )


def compute_hidden_states(net: Any, rows: Sequence[Sequence[int]], pad_token_id: int) -> list[Tensor]:
    """Return the last hidden states of every token of some rows, computed in one batch."""
    ids, mask = pad_rows(rows, pad_token_id)
    ids, mask = ids.to(net.device), mask.to(net.device)
    with torch.no_grad():
        # On the CPU, since the hidden states of a whole training set can exceed the memory of a GPU.
        hidden_states = (
            getattr(net, net.base_model_prefix)(input_ids=ids, attention_mask=mask).last_hidden_state.float().cpu()
        )
    return [states[: len(row)] for states, row in zip(hidden_states, rows, strict=True)]


class CachedBody(nn.Module):
    """A stand-in for the body of a network that returns hidden states computed before."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        # The pooler is trained with the head, but belongs to the body in transformers' classes.
        self.pooler = getattr(body, "pooler", None)
        self.activation = getattr(body, "pooler_activation", None)  # of ALBERT, whose pooler is a bare linear layer
        self.states: Tensor | None = None

    def forward(self, *_: object, **__: object) -> Any:
        """Return the cached states, whatever the input is."""
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        assert self.states is not None
        return BaseModelOutputWithPoolingAndCrossAttentions(
            last_hidden_state=self.states,  # type: ignore[arg-type]
            pooler_output=self._apply_pooler(self.states),
        )

    def _apply_pooler(self, states: Tensor) -> Any:
        if self.pooler is None:
            return None
        return self.activation(self.pooler(states[:, 0])) if self.activation is not None else self.pooler(states)


@contextmanager
def use_cached_states(net: Any) -> Iterator[CachedBody]:
    """Replace a network's body by cached hidden states."""
    body = getattr(net, net.base_model_prefix)
    cached_body = CachedBody(body)
    setattr(net, net.base_model_prefix, cached_body)
    try:
        yield cached_body
    finally:
        setattr(net, net.base_model_prefix, body)


def train_with_held_out(
    recipe: FineTuningRecipe,
    pretrained: PretrainedNetwork,
    train_rows: TokenizedSentences,
    held_out_rows: TokenizedSentences,
    device: torch.device,
    run: CheckpointedRun,
) -> TrainingResult:
    """Train all weights, or the head alone; the network ends with the weights of the best held-out MCC."""
    net, pad_token_id = pretrained.net.to(device), pretrained.pad_token_id
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(not recipe.frozen or name in pretrained.new_weights)
    train_logits, held_out_logits = (_make_logits_function(rows, pad_token_id) for rows in (train_rows, held_out_rows))
    if not recipe.frozen:
        task = _make_training_task(recipe, pretrained, (train_rows, train_logits), (held_out_rows, held_out_logits))
        return train_network(task, make_schedule(recipe, len(train_rows)), run, SingleProcess(device))
    # The body of a probe does not change, so that one forward pass over it serves all epochs.
    train_states, held_out_states = (
        _compute_all_states(net.eval(), rows, pad_token_id, run.report_progress) for rows in (train_rows, held_out_rows)
    )
    with use_cached_states(net) as cached_body:
        task = _make_training_task(
            recipe,
            pretrained,
            (train_rows, _read_cached(cached_body, train_states, train_logits)),
            (held_out_rows, _read_cached(cached_body, held_out_states, held_out_logits)),
        )
        return train_network(task, make_schedule(recipe, len(train_rows)), run, SingleProcess(device))


def _make_training_task(
    recipe: FineTuningRecipe,
    pretrained: PretrainedNetwork,
    training: tuple[TokenizedSentences, LogitsFunction],
    held_out: tuple[TokenizedSentences, LogitsFunction],
) -> TrainingTask:
    """Return cross-entropy on the training sentences, to be stopped by the MCC on the held-out ones."""
    train_rows, compute_logits = training
    batches = EpochBatches(train_rows.lengths, recipe.batch_size, recipe.seed)

    def compute_loss(net: nn.Module, indices: Sequence[int]) -> Tensor:
        logits = compute_logits(net, indices)
        labels = torch.tensor([train_rows.labels[index] for index in indices], device=logits.device)
        # In float32: bfloat16 has too few digits for a log-softmax.
        return functional.cross_entropy(logits.float(), labels)

    return TrainingTask(
        pretrained.net,
        [make_optimiser(recipe, pretrained.net, pretrained.new_weights)],
        lambda context: [batches.get_batch(context.step)],
        compute_loss,
        tokens_per_step=sum(train_rows.lengths) // batches.steps_per_epoch,
        # The trainer minimises, and the MCC is to be maximised.
        dev=lambda net: 1 - _compute_mcc(net, *held_out),
    )


def make_schedule(recipe: FineTuningRecipe, sentences: int, epochs: int = 0) -> TrainingSchedule:
    """Return the schedule for some sentences: linear warm-up, linear decay, gradients clipped at norm 1.

    Args:
        epochs: The number of epochs, if other than the recipe's. The dev set is then evaluated at the end only.
    """
    steps_per_epoch = -(-sentences // recipe.batch_size)
    return TrainingSchedule(
        steps=steps_per_epoch * (epochs or recipe.epochs),
        # The plateau ends where the warm-up ends, so that the decay begins at once.
        rate_schedule=constant_then_linear(recipe.warmup, warmup=recipe.warmup),
        # An exact fraction: a float could round the end of an epoch to the next step.
        evaluate_every=0 if epochs else Fraction(steps_per_epoch, recipe.evaluations_per_epoch),
        patience=0 if epochs else recipe.patience,
        seed=recipe.seed,
    )


def make_optimiser(recipe: FineTuningRecipe, net: Any, new_weights: frozenset[str]) -> torch.optim.Optimizer:
    """Return AdamW over the trainable weights; the new ones have a learning rate of their own."""
    trainable = {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}
    groups = []
    for is_new, rate in ((True, recipe.head_learning_rate or recipe.learning_rate), (False, recipe.learning_rate)):
        # Weight decay is for matrices alone: biases and the gains of layer norms are not meant to shrink to zero.
        for is_matrix, decay in ((True, recipe.weight_decay), (False, 0.0)):
            parameters = [
                parameter
                for name, parameter in trainable.items()
                if (name in new_weights, parameter.ndim > 1) == (is_new, is_matrix)
            ]
            groups += [{"params": parameters, "lr": rate, "weight_decay": decay}] if parameters else []
    return torch.optim.AdamW(groups)


def _make_logits_function(rows: TokenizedSentences, pad_token_id: int) -> LogitsFunction:
    def compute_logits(net: Any, indices: Sequence[int]) -> Tensor:
        ids, mask = pad_rows([rows.token_ids[index] for index in indices], pad_token_id)
        device = next(net.parameters()).device
        logits: Tensor = net(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        return logits

    return compute_logits


def _read_cached(cached_body: CachedBody, states: Sequence[Tensor], compute_logits: LogitsFunction) -> LogitsFunction:
    """Return a function that computes logits from cached states; the tokens are still needed to find the padding."""

    def compute_logits_from_cache(net: Any, indices: Sequence[int]) -> Tensor:
        device = next(net.parameters()).device
        cached_body.states = pad_sequence([states[index] for index in indices], batch_first=True).to(device)
        return compute_logits(net, indices)

    return compute_logits_from_cache


def _compute_all_states(
    net: Any, rows: TokenizedSentences, pad_token_id: int, progress: TrainingProgressCallback
) -> list[Tensor]:
    """Return the hidden states of every row, in the order of the rows."""
    states_by_index = dict[int, Tensor]()
    for indices in rows.batches_by_length():
        batch_states = compute_hidden_states(net, [rows.token_ids[index] for index in indices], pad_token_id)
        # Cloned, since a slice would keep the padded states of its whole batch in memory.
        states_by_index.update(zip(indices, (states.clone() for states in batch_states), strict=True))
        progress(TrainingProgress("hidden states", len(states_by_index), len(rows)))
    return [states_by_index[index] for index in range(len(rows))]


def _compute_mcc(net: Any, rows: TokenizedSentences, compute_logits: LogitsFunction) -> float:
    """Return Matthews' correlation on the held-out sentences."""
    log_odds = np.empty(len(rows))
    for indices in rows.batches_by_length():
        logits = compute_logits(net, indices).float()
        log_odds[indices] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
    # NaN compares as "unacceptable" and would pass as an ordinary, bad MCC.
    if not np.isfinite(log_odds).all():
        raise TrainError("the weights are no longer finite numbers: choose a lower learning rate")
    return matthews((log_odds > 0).astype(np.float64), np.array(rows.labels, np.float64))


def _check_pooling(recipe: FineTuningRecipe, pretrained: PretrainedNetwork, detected: str) -> None:
    """Refuse an architecture that cannot pool as the recipe wants, or whose logits may depend on padding."""
    name = type(pretrained.net).__name__
    if detected == OTHER_POOLING:
        raise TrainError(
            f"{name} of transformers pools {OTHER_POOLING}, perhaps padding too: take a model of another kind"
        )
    if recipe.pooling not in ("auto", detected):
        supported = "first or mean" if hasattr(pretrained.net.config, "classifier_pooling") else detected
        raise TrainError(
            f"pooling is {recipe.pooling!r}, and {name} of transformers pools {detected!r}; it can do: {supported}. "
            "Leave pooling=auto, or take another model."
        )


def _collect_facts(
    pretrained: PretrainedNetwork,
    train_rows: TokenizedSentences,
    held_out_rows: TokenizedSentences,
    result: TrainingResult,
) -> dict[str, object]:
    """Return what the model card lists."""
    parameters = list(pretrained.net.parameters())
    # The first of several equal evaluations, whose weights the trainer keeps too.
    best_step, _ = min(result.evaluations, key=lambda evaluation: evaluation[1])
    return {
        "pretrained model": pretrained.files.signature,
        "architecture": type(pretrained.net).__name__,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "trainable parameters": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        "tokens of the longest sentence": max(len(train_rows.longest_row), len(held_out_rows.longest_row)),
        "sentences truncated": train_rows.truncated_count + held_out_rows.truncated_count,
        "mcc at each evaluation": [round(1 - dev_loss, 4) for _, dev_loss in result.evaluations],
        "steps to the best evaluation": best_step,
    }


def _save_classifier(recipe: FineTuningRecipe, pretrained: PretrainedNetwork, out: Path) -> None:
    """Save network and tokenizer in the format of transformers."""
    net = pretrained.net.cpu().to(getattr(torch, recipe.dtype))
    if pretrained.files.gguf:
        # The weights were dequantised when they were loaded, so the saved configuration must not call them quantised.
        net.config.__dict__.pop("quantization_config", None)
        net.hf_quantizer = None
    # Truncation and padding of the training would otherwise be saved in tokenizer.json, and apply to every later text.
    pretrained.tokenizer.backend_tokenizer.no_truncation()
    pretrained.tokenizer.backend_tokenizer.no_padding()
    net.save_pretrained(out)
    pretrained.tokenizer.save_pretrained(out)


def _evaluate_saved(
    out: Path, held_out_set: LabelledSentences, rows: TokenizedSentences, device: torch.device
) -> dict[str, float]:
    """Return MCC and accuracy of the saved classifier, opened as any user would open it.

    This also verifies the folder: its tokenizer must give the tokens that the network was trained on.
    """
    model, queries = open_model(str(out), device=str(device)), [Query(text) for text in held_out_set.texts]
    assert isinstance(model, Classifier)
    if not rows.truncated_count and [encoding.ids for encoding in model.encode(queries)] != list(rows.token_ids):
        raise TrainError(f"{out}: the saved tokenizer splits sentences otherwise than the original one")
    predicted = np.empty(len(rows))
    for indices in rows.batches_by_length():
        label_scores = model.run([ClassifierEncoding(queries[index], rows.token_ids[index]) for index in indices])
        predicted[indices] = [scores.logits[0] < scores.logits[1] for scores in label_scores]
    labels = np.array(rows.labels, np.float64)
    return {"mcc": matthews(predicted, labels), "accuracy": float((predicted == labels).mean())}
