"""The training of ``gpt`` and ``bert``: networks, losses, packed and masked rows, Muon and AdamW, the saved model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch.nn import functional

from acceptability.errors import CorpusError
from acceptability.train.checkpoint import atomic_write
from acceptability.train.recipe import RecipeOutput, TrainingJob
from acceptability.train.trainer import (
    ProcessGroup,
    StepContext,
    TrainingResult,
    TrainingSchedule,
    TrainingTask,
    constant_then_linear,
    train_network,
)
from acceptability.train.transformer_recipes import (
    BOUNDARY,
    MASK,
    PAD,
    BERTRecipe,
    TokenizedCorpus,
    TransformerRecipe,
    load_initial_weights,
    read_training_metadata,
)

IGNORE_INDEX = -100
"""The target of a position that has no loss."""

# Qwen3 can drop attention weights only, and ModernBERT has options of its own. These modules end the residual branches
# of both (attention, feed-forward layer) or embed tokens: hooks on them apply dropout at the same points in both.
_DROPOUT_MODULES = ("o_proj", "down_proj", "Wo", "embed_tokens", "tok_embeddings")


def train_transformer(
    recipe: TransformerRecipe,
    corpus: TokenizedCorpus,
    dev: TokenizedCorpus | None,
    job: TrainingJob,
    process_group: ProcessGroup,
) -> RecipeOutput:
    """Train the network of a recipe on a tokenized corpus, and save it in the format of transformers.

    Args:
        dev: Held-out text, whose loss chooses the weights that are saved.
    """
    objective = build_objective(recipe, corpus)
    schedule = TrainingSchedule(
        steps=0 if recipe.minutes else math.ceil(recipe.epochs * len(corpus.ids) / recipe.batch_tokens),
        minutes=recipe.minutes,
        rate_schedule=constant_then_linear(recipe.constant_fraction),
        evaluate_every=recipe.evaluate_every,
        patience=recipe.patience,
        save_seconds=recipe.save_seconds,
        seed=recipe.seed,
        compile=recipe.compile == "yes" or (recipe.compile == "auto" and process_group.device.type == "cuda"),
    )
    result = train_network(
        _build_training_task(recipe, corpus, dev, objective, process_group), schedule, job, process_group
    )
    _save_model(recipe, corpus, objective.net, job)
    counts = corpus.count_tokens()
    unigrams = {token: count for token, count in counts.items() if token not in (PAD, MASK)}
    initial_model = (
        {"initial model": read_training_metadata(Path(recipe.initial_model))} if recipe.initial_model else {}
    )
    return RecipeOutput(
        unigrams, {**_collect_facts(corpus, objective, result), "processes": process_group.size, **initial_model}
    )


def build_objective(recipe: TransformerRecipe, corpus: TokenizedCorpus) -> Any:
    """Return a module that computes the loss of a new network, whose weights are drawn with the recipe's seed."""
    # Drawn on the CPU, so that the initial weights do not depend on the device.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        objective = (
            MaskedLMLoss(_build_encoder(recipe, corpus))
            if recipe.is_masked
            else CausalLMLoss(_build_decoder(recipe, corpus))
        )
    if recipe.initial_model:
        load_initial_weights(objective.net, Path(recipe.initial_model))
    if recipe.dropout:
        for name, module in objective.named_modules():
            if name.rpartition(".")[2] in _DROPOUT_MODULES:
                module.register_forward_hook(_make_dropout_hook(recipe.dropout))
    return objective


def _make_dropout_hook(rate: float) -> Callable[..., torch.Tensor]:
    return lambda module, _, output: functional.dropout(output, rate, training=module.training)


def _build_decoder(recipe: TransformerRecipe, corpus: TokenizedCorpus) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    options: dict[str, Any] = {"head_dim": recipe.width // recipe.heads, "rope_theta": 10_000.0}
    config = Qwen3Config(**_build_config_options(recipe, corpus), num_key_value_heads=recipe.heads, **options)
    return Qwen3ForCausalLM(config)  # type: ignore[no-untyped-call]


def _build_encoder(recipe: TransformerRecipe, corpus: TokenizedCorpus) -> Any:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    options: dict[str, Any] = {
        "cls_token_id": corpus.boundary_id,
        "sep_token_id": corpus.boundary_id,
        "hidden_activation": "silu",
        "classifier_activation": "silu",
        "decoder_bias": False,
        # Full attention in every layer: a default row is shorter than ModernBERT's sliding window of 128 tokens.
        "global_attn_every_n_layers": 1,
        "global_rope_theta": 10_000.0,
    }
    return ModernBertForMaskedLM(ModernBertConfig(**_build_config_options(recipe, corpus), **options))


def _build_config_options(recipe: TransformerRecipe, corpus: TokenizedCorpus) -> dict[str, Any]:
    return {
        "vocab_size": corpus.tokenizer.get_vocab_size(),
        "hidden_size": recipe.width,
        "intermediate_size": recipe.feed_forward,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "max_position_embeddings": recipe.max_positions,
        "bos_token_id": corpus.boundary_id,
        "eos_token_id": corpus.boundary_id,
        "pad_token_id": corpus.tokenizer.token_to_id(PAD),
        "tie_word_embeddings": True,
        "attn_implementation": "sdpa",
    }


class CausalLMLoss(torch.nn.Module):
    """A causal network, with the mean cross-entropy of rows of tokens as its output."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of predicting each token of a row from those before it."""
        # A mask that the caller gives, though it is None, is not built again: SDPA then runs its causal flash kernel
        # instead of one that reads a mask.
        outputs = self.net.model(input_ids=rows[:, :-1], attention_mask={"full_attention": None}, use_cache=False)
        logits = self.net.lm_head(outputs.last_hidden_state)
        # Autocast leaves bfloat16 logits; the log-softmax over the vocabulary needs float32.
        return functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())


class MaskedLMLoss(torch.nn.Module):
    """A masked network, with the mean cross-entropy of the masked tokens as its output."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of predicting the masked tokens; see ``MaskedRows`` for the arguments."""
        # Rows have no padding, so no mask is needed. transformers 5 takes one per kind of layer; the ModernBERT of
        # transformers 4 knows no such mapping, and builds its own masks when it is given None.
        attention_mask = (
            None if transformers.__version__.startswith("4.") else {"full_attention": None, "sliding_attention": None}
        )
        hidden_states = self.net.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        # Logits of the candidate positions only: at most 40 % of a row have a target, and in a network of this size
        # the product with the vocabulary is a large part of the cost.
        selected = hidden_states.gather(1, positions.unsqueeze(-1).expand(-1, -1, hidden_states.shape[-1]))
        logits = self.net.decoder(self.net.head(selected))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORE_INDEX)


def _build_training_task(
    recipe: TransformerRecipe,
    corpus: TokenizedCorpus,
    dev: TokenizedCorpus | None,
    objective: Any,
    process_group: ProcessGroup,
) -> TrainingTask:
    """Return the task: batches of packed rows, the network's loss, its optimisers, the dev loss."""
    # Before the optimisers are built: they keep references to the parameters on the device.
    objective.to(process_group.device)
    length, device = _row_length(recipe), process_group.device
    rows = PackedRows(corpus.ids, corpus.boundary_id, length, seed=recipe.seed, device=device)

    def batches(context: StepContext) -> list[tuple[torch.Tensor, ...]]:
        # Every process draws and masks the whole batch and takes its shard afterwards, so that the number of processes
        # does not change the batch.
        batch_rows = rows.take_rows(context.step * recipe.rows_per_batch, recipe.rows_per_batch)
        inputs = _prepare_inputs(recipe, corpus, batch_rows, context)
        own_parts = [
            tensor[context.shard(recipe.rows_per_batch)].chunk(recipe.gradient_accumulation_steps) for tensor in inputs
        ]
        return list(zip(*own_parts, strict=True))

    return TrainingTask(
        net=objective,
        optimisers=build_optimisers(recipe, objective.net, device),
        batches=batches,
        loss=lambda net, batch: net(*batch),
        tokens_per_step=recipe.batch_tokens,
        dev=_make_dev_loss(recipe, dev, process_group) if dev else None,
    )


def _row_length(recipe: TransformerRecipe) -> int:
    # A causal network reads a row without its last token, and predicts it without its first.
    return recipe.sequence_length if recipe.is_masked else recipe.sequence_length + 1


def _prepare_inputs(
    recipe: TransformerRecipe, corpus: TokenizedCorpus, rows: torch.Tensor, context: StepContext
) -> tuple[torch.Tensor, ...]:
    """Return the arguments of the loss module for some rows: for a masked network, with tokens masked."""
    if not isinstance(recipe, BERTRecipe):
        return (rows,)
    mask_id = corpus.tokenizer.token_to_id(MASK)
    masker = TokenMasker(mask_id, corpus.boundary_id, recipe.mask_rate_start, recipe.mask_rate_end, recipe.seed)
    return masker.mask_rows(rows, context.step, context.progress)


class PackedRows:
    """A tokenized corpus as an endless sequence of rows of equal length, each of which begins at a sentence.

    A row continues with the sentences that follow its first. Every sentence begins a row once before any does so a
    second time; the order of an epoch is a permutation drawn from the seed. Rows are gathered on the device that holds
    the corpus.

    Args:
        ids: The tokens, with ``boundary_id`` before each sentence.
        length: The number of tokens in a row.
    """

    def __init__(
        self, ids: NDArray[Any], boundary_id: int, length: int, *, seed: int, device: torch.device | str = "cpu"
    ) -> None:
        if len(ids) < 2:
            raise CorpusError("the corpus is too small: it has fewer than two tokens")
        self.length, self.seed, self.device = length, seed, device
        self.ids = torch.from_numpy(ids.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(np.flatnonzero(ids == boundary_id)).to(device)
        self._offsets = torch.arange(length, device=device)
        # A batch reads at most the end of one epoch and the beginning of the next, unless it is larger than an epoch.
        self._row_order = lru_cache(maxsize=2)(self._shuffle_rows)

    def __len__(self) -> int:
        """Return the number of rows in an epoch, which is the number of sentences."""
        return len(self.starts)

    def take_rows(self, first: int, count: int) -> torch.Tensor:
        """Return ``count`` rows of the endless sequence, from the row with index ``first``."""
        row_orders = []
        while count:
            epoch, offset = divmod(first, len(self))
            count_here = min(count, len(self) - offset)
            row_orders.append(self._row_order(epoch)[offset : offset + count_here])
            first, count = first + count_here, count - count_here
        positions = self.starts[torch.cat(row_orders)].unsqueeze(1) + self._offsets
        # The corpus is a ring: rows that begin at its last sentences continue at its first, so that all have the same
        # length.
        return self.ids[positions % len(self.ids)].long()

    def _shuffle_rows(self, epoch: int) -> torch.Tensor:
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self))
        return torch.from_numpy(order).to(self.device)


class MaskedRows(NamedTuple):
    """Rows with masked tokens.

    Args:
        input_ids: The rows as the network reads them.
        positions: The token positions that may be masked, equally many in each row.
        targets: The original tokens at these positions, or ``IGNORE_INDEX`` where nothing is masked.
    """

    input_ids: torch.Tensor
    positions: torch.Tensor
    targets: torch.Tensor


@dataclass(frozen=True)
class TokenMasker:
    """Masks random tokens of rows, always by ``<mask>``; the masking rate changes linearly during the training.

    Args:
        mask_id: The id of ``<mask>``.
        boundary_id: The id of the token between sentences, which is never masked.
        begin_rate: The share of a row that is masked at the beginning of the training.
        end_rate: The share that is masked at its end.
    """

    mask_id: int
    boundary_id: int
    begin_rate: float
    end_rate: float
    seed: int

    def mask_rows(self, rows: torch.Tensor, step: int, progress: float) -> MaskedRows:
        """Return rows with the same number of tokens masked in each; the result depends on the seed and ``step``."""
        random = np.random.default_rng([self.seed, step])
        rate = self.begin_rate + (self.end_rate - self.begin_rate) * progress
        # A row has a whole number of masks: rounded up or down at random, it has the right mean.
        count = math.floor(rate * rows.shape[1] + random.random())
        generator = torch.Generator(rows.device).manual_seed(int(random.integers(2**62)))
        # The positions with the lowest random keys are a sample without replacement. Keys are below 1, so boundaries
        # come last, and those that are selected in a row of few other tokens are recognised by their key.
        random_keys = torch.rand(rows.shape, generator=generator, device=rows.device)
        random_keys.masked_fill_(rows == self.boundary_id, 2.0)
        lowest_keys, positions = random_keys.topk(self._count_candidates(rows.shape[1]), dim=1, largest=False)
        is_masked = (lowest_keys < 2.0) & (torch.arange(positions.shape[1], device=rows.device) < count)
        original_ids = rows.gather(1, positions)
        input_ids = rows.scatter(1, positions, torch.where(is_masked, self.mask_id, original_ids))
        return MaskedRows(input_ids, positions, torch.where(is_masked, original_ids, IGNORE_INDEX))

    def _count_candidates(self, length: int) -> int:
        # As many as the highest rate needs, at every step: torch.compile would compile again for another shape.
        return min(length, math.floor(max(self.begin_rate, self.end_rate) * length) + 1)


def _make_dev_loss(
    recipe: TransformerRecipe, dev: TokenizedCorpus, process_group: ProcessGroup
) -> Callable[[torch.nn.Module], float]:
    """Return a function that computes the mean loss on the dev set."""
    rows = PackedRows(dev.ids, dev.boundary_id, _row_length(recipe), seed=0, device=process_group.device)
    count = min(len(rows), math.ceil(len(dev.ids) / recipe.sequence_length))
    rows_at_once = min(count, recipe.rows_per_batch // recipe.gradient_accumulation_steps)

    def compute_dev_loss(net: torch.nn.Module) -> float:
        losses, sizes = [], []
        for number, first in enumerate(range(0, count, rows_at_once)):
            batch = rows.take_rows(first, min(rows_at_once, count - first))
            # Always the same rows, masks and (final) masking rate: losses of different steps can be compared.
            losses.append(net(*_prepare_inputs(recipe, dev, batch, StepContext(number, 1.0))))
            sizes.append(len(batch))
        weights = torch.tensor(sizes, dtype=torch.float64, device=process_group.device)
        return float(torch.stack(losses).double() @ weights) / count

    return compute_dev_loss


def build_optimisers(recipe: TransformerRecipe, net: Any, device: torch.device) -> list[torch.optim.Optimizer]:
    """Return Muon (Jordan et al. 2024) for the weight matrices of the hidden layers, AdamW for embeddings and norms."""
    embeddings = net.get_input_embeddings().weight
    # Muon orthogonalises the momentum of a matrix, which makes sense for linear maps between hidden states only: the
    # embeddings (tied to the output layer) are looked up row by row, and the weights of norms are vectors.
    matrices = [parameter for parameter in net.parameters() if parameter.ndim == 2 and parameter is not embeddings]
    others = [parameter for parameter in net.parameters() if parameter.ndim != 2 or parameter is embeddings]
    # "original" multiplies the rate of an n × m matrix by √max(1, n/m). Where ModernBERT stacks matrices in one
    # parameter (queries, keys and values; the two halves of its gated layer), the step has the norm that it would have
    # if each were orthogonalised on its own, so one rate fits all. torch's own weight decay would be 0.1.
    muon = torch.optim.Muon(
        matrices, lr=recipe.muon_learning_rate, weight_decay=recipe.weight_decay, momentum=0.95, adjust_lr_fn="original"
    )
    adamw = torch.optim.AdamW(
        others, lr=recipe.adamw_learning_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"
    )
    return [muon, adamw]


def _save_model(recipe: TransformerRecipe, corpus: TokenizedCorpus, net: Any, job: TrainingJob) -> None:
    """Write the network and its tokenizer into the model's folder, in the format of transformers."""
    # save_pretrained can be killed halfway through a file, so it writes elsewhere and each file is copied atomically.
    draft = job.checkpoints.folder / "model"
    net.to("cpu", getattr(torch, recipe.dtype)).save_pretrained(draft)
    _build_tokenizer(recipe, corpus).save_pretrained(draft)
    _rename_tokenizer_class(draft / "tokenizer_config.json")
    for path in draft.iterdir():
        with atomic_write(job.out / path.name) as out:
            out.write(path.read_bytes())
    shutil.rmtree(draft)


def _build_tokenizer(recipe: TransformerRecipe, corpus: TokenizedCorpus) -> Any:
    """Return the tokenizer for transformers, which frames a text with ``<s>`` as sentences were in training."""
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer.from_str(corpus.tokenizer.to_str())
    # A masked network has seen the boundary on both sides of a sentence; a causal one must predict the second.
    frame = f"{BOUNDARY} $A {BOUNDARY}" if recipe.is_masked else f"{BOUNDARY} $A"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=frame, special_tokens=[(BOUNDARY, corpus.boundary_id)]
    )
    names = {"bos_token": BOUNDARY, "eos_token": BOUNDARY, "pad_token": PAD}
    if recipe.is_masked:
        names |= {"cls_token": BOUNDARY, "sep_token": BOUNDARY, "mask_token": MASK}
    limit = recipe.max_positions
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **names)  # type: ignore[no-untyped-call]


def _rename_tokenizer_class(path: Path) -> None:
    """Name the tokenizer's class as both transformers 4 and 5 know it."""
    # transformers 5 writes the name of a class that transformers 4 does not have, and cannot open.
    config = json.loads(path.read_text(encoding="utf-8"))
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config.pop("backend", None)
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")


def _collect_facts(corpus: TokenizedCorpus, objective: Any, result: TrainingResult) -> dict[str, object]:
    return {
        "parameters": sum(parameter.numel() for parameter in objective.parameters()),
        "subwords": corpus.tokenizer.get_vocab_size(),
        "tokens in the corpus": len(corpus.ids),
        "tokens seen": result.tokens,
        "steps": result.steps,
        "seconds of training": round(result.seconds, 1),
        "loss at the end": round(result.loss, 4),
        "best loss on the dev set": None if result.dev_loss is None else round(result.dev_loss, 4),
        "stopped early": result.stopped_early,
    }
