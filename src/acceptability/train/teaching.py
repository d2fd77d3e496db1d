"""How the recipes ``gpt`` and ``bert`` teach: the networks, what these must foretell, the optimisers, what is saved."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.nn import functional

from acceptability.train.beginning import take_weights, told_of
from acceptability.train.checkpoint import atomic
from acceptability.train.hiding import IGNORED, Hiding
from acceptability.train.loop import Learnt, Lesson, Moment, Pace, constant_then_linear, learn
from acceptability.train.muon import Muon
from acceptability.train.packing import Rows
from acceptability.train.recipe import Job, Trained
from acceptability.train.subwords import EDGE, MASK, PAD, Pieces
from acceptability.train.team import Team
from acceptability.train.transformers import BERT, Transformer

_STACKED = {"Wqkv.weight": 3, "Wi.weight": 2}
"""Matrices that ModernBERT keeps one above the other, and how many there are."""
_BRANCHES = ("o_proj", "down_proj", "Wo", "embed_tokens", "tok_embeddings")
"""What ends a branch of the network, where values are dropped."""


class NextToken(torch.nn.Module):
    """A causal network, and its mean loss for rows of tokens."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Foretell each token of every row from those before it."""
        # A mask that is given, though empty, is not built anew: attention then takes its fastest way.
        read = self.net.model(input_ids=rows[:, :-1], attention_mask={"full_attention": None}, use_cache=False)
        logits = self.net.lm_head(read.last_hidden_state)
        return functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())


class HiddenTokens(torch.nn.Module):
    """A masked network, and its mean loss for hidden tokens."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, shown: torch.Tensor, places: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Foretell the tokens that are hidden; logits are computed for their places alone."""
        # ModernBERT of transformers 4 knows no masks by kind, and makes its own.
        none = (
            None if transformers.__version__.startswith("4.") else {"full_attention": None, "sliding_attention": None}
        )
        read = self.net.model(input_ids=shown, attention_mask=none).last_hidden_state
        chosen = read.gather(1, places.unsqueeze(-1).expand(-1, -1, read.shape[-1]))
        logits = self.net.decoder(self.net.head(chosen))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED)


def taught(recipe: Transformer, pieces: Pieces, dev: Pieces | None, job: Job, team: Team) -> Trained:
    """Train the network of a recipe on a corpus in numbers, and save it for transformers."""
    objective = built(recipe, pieces)
    pace = Pace(
        steps=0 if recipe.minutes else math.ceil(recipe.epochs * len(pieces.ids) / recipe.batch_tokens),
        minutes=recipe.minutes,
        schedule=constant_then_linear(recipe.constant),
        evaluate_every=recipe.evaluate_every,
        patience=recipe.patience,
        save_seconds=recipe.save_seconds,
        seed=recipe.seed,
        compile=recipe.compile == "yes" or (recipe.compile == "auto" and team.device.type == "cuda"),
    )
    learnt = learn(_lesson(recipe, pieces, dev, objective, team), pace, job, team)
    _save(recipe, pieces, objective.net, job)
    counts = pieces.counts()
    unigrams = {token: count for token, count in counts.items() if token not in (PAD, MASK)}
    began = {"began with": told_of(Path(recipe.start))} if recipe.start else {}
    return Trained(unigrams, {**_facts(pieces, objective, learnt), "processes": team.size, **began})


def built(recipe: Transformer, pieces: Pieces) -> Any:
    """Return a network with its first weights, drawn with the recipe's seed, inside of what measures its loss."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        objective = HiddenTokens(_encoder(recipe, pieces)) if recipe.is_masked else NextToken(_decoder(recipe, pieces))
    if recipe.start:
        take_weights(objective.net, Path(recipe.start))
    if recipe.dropout:
        for name, module in objective.named_modules():
            if name.rpartition(".")[2] in _BRANCHES:
                module.register_forward_hook(_dropping(recipe.dropout))
    return objective


def _dropping(share: float) -> Callable[..., torch.Tensor]:
    return lambda module, _, out: functional.dropout(out, share, training=module.training)


def _decoder(recipe: Transformer, pieces: Pieces) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    own: dict[str, Any] = {"head_dim": recipe.width // recipe.heads, "rope_theta": 10_000.0}
    config = Qwen3Config(**_shape(recipe, pieces), num_key_value_heads=recipe.heads, **own)
    return Qwen3ForCausalLM(config)  # type: ignore[no-untyped-call]


def _encoder(recipe: Transformer, pieces: Pieces) -> Any:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    own: dict[str, Any] = {
        "cls_token_id": pieces.edge,
        "sep_token_id": pieces.edge,
        "hidden_activation": "silu",
        "classifier_activation": "silu",
        "decoder_bias": False,
        "global_attn_every_n_layers": 1,
        "global_rope_theta": 10_000.0,
    }
    return ModernBertForMaskedLM(ModernBertConfig(**_shape(recipe, pieces), **own))


def _shape(recipe: Transformer, pieces: Pieces) -> dict[str, Any]:
    return {
        "vocab_size": pieces.tokenizer.get_vocab_size(),
        "hidden_size": recipe.width,
        "intermediate_size": recipe.feed_forward,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "max_position_embeddings": recipe.positions,
        "bos_token_id": pieces.edge,
        "eos_token_id": pieces.edge,
        "pad_token_id": pieces.tokenizer.token_to_id(PAD),
        "tie_word_embeddings": True,
        "attn_implementation": "sdpa",
    }


def _lesson(recipe: Transformer, pieces: Pieces, dev: Pieces | None, objective: Any, team: Team) -> Lesson:
    objective.to(team.device)
    length = recipe.row if recipe.is_masked else recipe.row + 1
    rows = Rows(pieces.ids, pieces.edge, length, seed=recipe.seed, device=team.device)

    def batches(moment: Moment) -> list[tuple[torch.Tensor, ...]]:
        drawn = _seen(recipe, pieces, rows.at(moment.step * recipe.rows, recipe.rows), moment)
        mine = [each[moment.share(recipe.rows)].chunk(recipe.parts) for each in drawn]
        return list(zip(*mine, strict=True))

    return Lesson(
        net=objective,
        optimisers=_optimisers(recipe, objective.net, team.device),
        batches=batches,
        loss=lambda net, batch: net(*batch),
        tokens=recipe.batch_tokens,
        dev=_dev_loss(recipe, dev, team) if dev else None,
    )


def _seen(recipe: Transformer, pieces: Pieces, drawn: torch.Tensor, moment: Moment) -> tuple[torch.Tensor, ...]:
    """Return what the network is given of some rows: for a masked one, with tokens hidden."""
    if not isinstance(recipe, BERT):
        return (drawn,)
    mask = pieces.tokenizer.token_to_id(MASK)
    hiding = Hiding(mask, pieces.edge, recipe.mask_begin, recipe.mask_end, recipe.seed)
    return hiding.hidden(drawn, moment.step, moment.progress)


def _dev_loss(recipe: Transformer, dev: Pieces, team: Team) -> Callable[[torch.nn.Module], float]:
    """Return what measures the mean loss on rows of the dev set: always the same, as at the end of the training."""
    length = recipe.row if recipe.is_masked else recipe.row + 1
    rows = Rows(dev.ids, dev.edge, length, seed=0, device=team.device)
    count = min(len(rows), math.ceil(len(dev.ids) / recipe.row))
    at_once = min(count, recipe.rows // recipe.parts)

    def measured(net: torch.nn.Module) -> float:
        losses, sizes = [], []
        for number, first in enumerate(range(0, count, at_once)):
            drawn = rows.at(first, min(at_once, count - first))
            losses.append(net(*_seen(recipe, dev, drawn, Moment(number, 1.0))))
            sizes.append(len(drawn))
        return (
            float(torch.stack(losses).double() @ torch.tensor(sizes, dtype=torch.float64, device=team.device)) / count
        )

    return measured


def _optimisers(recipe: Transformer, net: Any, device: torch.device) -> list[torch.optim.Optimizer]:
    embeddings = net.get_input_embeddings().weight
    matrices, others = [], []
    for name, each in net.named_parameters():
        pieces = next((count for end, count in _STACKED.items() if name.endswith(end)), 1)
        if each.ndim == 2 and each is not embeddings:
            matrices.append((each, pieces))
        else:
            others.append(each)
    adam = torch.optim.AdamW(
        others, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"
    )
    return [Muon(matrices, recipe.matrix_rate, decay=recipe.decay), adam]


def _save(recipe: Transformer, pieces: Pieces, net: Any, job: Job) -> None:
    """Write the model into its folder, in the format of transformers."""
    draft = job.checkpoints.folder / "model"
    net.to("cpu", getattr(torch, recipe.dtype)).save_pretrained(draft)
    _tokenizer(recipe, pieces).save_pretrained(draft)
    _rename_class(draft / "tokenizer_config.json")
    for path in draft.iterdir():
        with atomic(job.out / path.name) as out:
            out.write(path.read_bytes())
    shutil.rmtree(draft)


def _rename_class(path: Path) -> None:
    """Name the tokenizer's class as both older and newer versions of transformers know it."""
    told = json.loads(path.read_text(encoding="utf-8"))
    told["tokenizer_class"] = "PreTrainedTokenizerFast"
    told.pop("backend", None)
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")


def _tokenizer(recipe: Transformer, pieces: Pieces) -> Any:
    """Return the tokenizer for transformers: it frames a text as the network has seen sentences."""
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer.from_str(pieces.tokenizer.to_str())
    frame = f"{EDGE} $A {EDGE}" if recipe.is_masked else f"{EDGE} $A"
    own.post_processor = processors.TemplateProcessing(single=frame, special_tokens=[(EDGE, pieces.edge)])
    names = {"bos_token": EDGE, "eos_token": EDGE, "pad_token": PAD}
    if recipe.is_masked:
        names |= {"cls_token": EDGE, "sep_token": EDGE, "mask_token": MASK}
    limit = recipe.positions
    return PreTrainedTokenizerFast(tokenizer_object=own, model_max_length=limit, **names)  # type: ignore[no-untyped-call]


def _facts(pieces: Pieces, objective: Any, learnt: Learnt) -> dict[str, object]:
    return {
        "parameters": sum(each.numel() for each in objective.parameters()),
        "subwords": pieces.tokenizer.get_vocab_size(),
        "tokens in the corpus": len(pieces.ids),
        "tokens seen": learnt.tokens,
        "steps": learnt.steps,
        "seconds of training": round(learnt.seconds, 1),
        "loss at the end": round(learnt.loss, 4),
        "best loss on the dev set": None if learnt.dev_loss is None else round(learnt.dev_loss, 4),
        "stopped early": learnt.stopped_early,
    }
