"""Causal language models: each token after those before it.

The first token is scored after the start token: the tokenizer's own, or the one that
``bos='TOKEN'`` names. A model that has none, or ``bos=None``, leaves the first token
unscored, and the signature says ``bos=None``. ``eos=True`` scores the end token too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_bool, remembered
from acceptability.models.huggingface import (
    Checkpoint,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    in_target,
    logprobs_at,
    padded,
    within,
)
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tokens:
    """A query as token ids, with the places whose log-probability is wanted."""

    query: Query
    ids: tuple[int, ...]
    scored: tuple[int, ...]
    tokens: tuple[str, ...]
    offsets: tuple[Span, ...]

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class Causal:
    """A causal language model of transformers."""

    files: Checkpoint
    start: str | None
    eos: bool
    dtype: str
    device: str

    @property
    def signature(self) -> str:
        """The files and whatever changes a forward pass; the start token is spelled out."""
        return write(f"causal:{self.files.signature}", {"bos": self.bos, "eos": self.eos, "dtype": self.dtype})

    @property
    def bos(self) -> str | None:
        """The start token, or None where the first token is not scored."""
        if self.start != "auto":
            return self.start
        found = remembered(self.files.version, "bos", lambda: self.files.tokenizer.bos_token)
        return found if isinstance(found, str) else None

    @cached_property
    def net(self) -> Any:
        """The weights, read on first use, and seen to be causal."""
        net = self.files.net("AutoModelForCausalLM", dtype=self.dtype, device=self.device)
        if _sees_ahead(net):
            raise ModelError(
                f"{self.files.name} is no causal model: what it says of a token depends on later ones. "
                "If it is a masked model, write masked:…"
            )
        return net

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens, all tokenized at once."""
        coded = self.files.tokenizer(
            [query.full for query in queries], add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        if self.start == "auto" and self.bos is None:
            _log.warning("%s has no start token: first tokens are not scored; bos='TOKEN' names one", self.files.name)
        frame = self._before, self._after, self.files.positions
        return [
            self._tokens(index, query, (coded["input_ids"][index], coded["offset_mapping"][index]), frame)
            for index, query in enumerate(queries)
        ]

    def _tokens(
        self,
        index: int,
        query: Query,
        coded: tuple[list[int], list[Span]],
        frame: tuple[list[int], list[int], int],
    ) -> Tokens:
        (ids, offsets), (before, after, limit) = coded, frame
        check_length(len(before) + len(ids) + len(after), limit, index)
        wanted = [place for place in in_target(query, offsets) if place + len(before) > 0]
        unknown = self.files.tokenizer.unk_token_id
        if not wanted or all(ids[place] == unknown for place in wanted):
            raise QueryError(index, "the model scores none of its tokens: too short, or only unknown ones")
        tokens = self.files.tokenizer.convert_ids_to_tokens([ids[place] for place in wanted])
        spans = [within(query, offsets[place]) for place in wanted]
        scored = [place + len(before) for place in wanted]
        if after and not query.target:
            tokens.append(self.files.tokenizer.eos_token)
            spans.append((len(query.text),) * 2)
            scored.append(len(before) + len(ids))
        return Tokens(query, (*before, *ids, *after), tuple(scored), tuple(tokens), tuple(spans))

    @property
    def _before(self) -> list[int]:
        if self.bos is None:
            return []
        vocabulary = self.files.tokenizer.get_vocab()
        if self.bos not in vocabulary:
            raise ModelError(f"{self.files.name} has no token {self.bos!r} to start with; choose another bos")
        return [vocabulary[self.bos]]

    @property
    def _after(self) -> list[int]:
        if not self.eos:
            return []
        if self.files.tokenizer.eos_token_id is None:
            raise ModelError(f"{self.files.name} has no end token; leave eos=True away")
        return [self.files.tokenizer.eos_token_id]

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token, from one forward pass."""
        import torch

        ids, mask = padded([each.ids for each in batch], 0)
        rows = torch.tensor([row for row, each in enumerate(batch) for _ in each.scored])
        places = torch.tensor([place for each in batch for place in each.scored])
        net = self.net
        with enough_memory(f"{self.files.name}: a batch of {len(batch)} texts"), torch.inference_mode():
            logits = net(input_ids=ids.to(net.device), attention_mask=mask.to(net.device), use_cache=False).logits
            # The token at a place is predicted one place before it.
            logprobs = logprobs_at(logits[rows, places - 1], ids[rows, places])
        ends = np.cumsum([len(each.scored) for each in batch])[:-1]
        return [
            TokenScores(each.query.text, each.tokens, each.offsets, part)
            for each, part in zip(batch, np.split(logprobs, ends), strict=True)
        ]


def open_model(
    place: str,
    *,
    bos: str | None = "auto",
    eos: bool = False,
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
) -> Causal:
    """Return the causal model at a place."""
    if bos is not None and not isinstance(bos, str):
        raise ModelError(f"causal: bos is {bos!r}; expected a token, 'auto' or None")
    files = checkpoint("causal", place, allow_pickle=allow_pickle)
    return Causal(files, bos, checked_bool("eos", eos), checked_dtype(dtype), device)


def _sees_ahead(net: Any) -> bool:
    """Tell whether a change of the last token changes what is said of the first: a causal model cannot."""
    import torch

    ids = torch.tensor([[1, 2, 3, 3, 3, 3], [1, 2, 4, 5, 4, 5]], device=net.device)
    with torch.inference_mode():
        first, second = net(input_ids=ids, use_cache=False).logits[:, 0].float()
    noise = 1e-5 if net.dtype == torch.float32 else 3e-2
    return bool((first - second).abs().max() > noise * first.abs().max().clamp(min=1.0))
