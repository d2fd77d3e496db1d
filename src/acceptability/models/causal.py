"""Causal language models: each token after those before it.

The first token is scored after the start token: the tokenizer's own, or the one that
``bos='TOKEN'`` names. A model that has none, or ``bos=None``, leaves the first token
unscored, and the signature says ``bos=None``. ``eos=True`` scores the end token too.

``preset='minicons'`` and ``preset='lm-eval'`` frame a text as these tools do, so that numbers
can be reconciled: minicons reads the text as the tokenizer frames it by itself, and never
scores the first token; lm-eval puts a start token and a space before it.

``spaces='trailing'`` counts the space after a word to the word, and not the one before
it, as a reader would: a word's probability includes that it ends (Oh and Schuler 2024,
Pimentel and Meister 2024). By default the space belongs to the word that follows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_bool, checked_choice, remembered
from acceptability.models.huggingface import (
    Checkpoint,
    budget,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    in_target,
    within,
)
from acceptability.models.once import once
from acceptability.spelling import write
from acceptability.types import Query, TokenScores

if TYPE_CHECKING:
    from acceptability.models.left_to_right import CausalPass

PRESETS = ("minicons", "lm-eval")
_SPACES = ("Ġ", "▁", " ")
_log = logging.getLogger(__name__)


class Tokens(NamedTuple):
    """A query as token ids, with the places whose log-probability is wanted.

    Args:
        ids: The tokens, with those that frame the text.
        scored: The places that are scored: a token's own, counted with the frame.
        first: How many tokens stand before the text's own.
        lead: How many characters were put before the text.
        coded: Where the text's own tokens stand in it.
    """

    query: Query
    ids: list[int]
    scored: Sequence[int]
    first: int
    lead: int
    coded: Any

    @property
    def size(self) -> int:
        """How many tokens the network must read: all before the last one that is scored."""
        return self.scored[-1]

    def said(self, logprobs: NDArray[np.float32], names: Sequence[str]) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        ids, query, spans = self.ids, self.query, self.coded.offsets
        tokens = tuple([names[ids[place]] for place in self.scored])
        if not query.target and not query.context and not self.lead and len(spans) == len(tokens):
            return TokenScores(query.text, tokens, tuple(spans), logprobs)
        spans.append((len(query.full) + self.lead,) * 2)  # where an end token stands
        moved = [(max(a - self.lead, 0), max(b - self.lead, 0)) for a, b in spans]
        offsets = tuple([within(query, moved[place - self.first]) for place in self.scored])
        return TokenScores(query.text, tokens, offsets, logprobs)


@dataclass(frozen=True)
class Causal:
    """A causal language model of transformers."""

    files: Checkpoint
    start: str | None
    eos: bool
    dtype: str
    device: str
    preset: str | None = None
    spaces: str = "leading"

    @property
    def signature(self) -> str:
        """The files and whatever changes a forward pass; the start token is spelled out."""
        framing = {"preset": self.preset} if self.preset else {"bos": self.bos, "eos": self.eos}
        spaces = {"spaces": self.spaces} if self.spaces != "leading" else {}
        return write(f"causal:{self.files.signature}", {**framing, **spaces, "dtype": self.dtype, **self.files.options})

    @property
    def bos(self) -> str | None:
        """The start token, or None where the first token is not scored."""
        if self.preset == "minicons":
            return None
        if self.start != "auto":
            return self.start
        fact, names = ("prefix", ("bos_token", "eos_token")) if self.preset else ("bos", ("bos_token",))
        tokens = (getattr(self.files.tokenizer, name) for name in names)
        found = remembered(self.files.version, fact, lambda: next(filter(None, tokens), None))
        return found if isinstance(found, str) else None

    @property
    def net(self) -> Any:
        """The network, made ready on first use."""
        return self.forward.net

    def _opened(self) -> Any:
        """Return the network as it was saved, seen to be causal."""
        net = self.files.net("AutoModelForCausalLM", dtype=self.dtype, device=self.device)
        if _sees_ahead(net):
            raise ModelError(
                f"{self.files.name} is no causal model: what it says of a token depends on later ones. "
                "If it is a masked model, write masked:…"
            )
        return net

    @once
    def forward(self) -> CausalPass:
        """The fastest way through the network that gives what the plain way gives."""
        from acceptability.models.left_to_right import causal_pass

        return causal_pass(self._opened, self.files.folder)

    @property
    def packing(self) -> str:
        """Which queries should go through the network together."""
        return self.forward.packing

    @property
    def budget(self) -> int:
        """How many tokens should go through it at once."""
        return min(budget(self.net.device.type), self.forward.most)

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens, all tokenized at once."""
        lead = " " if self.preset == "lm-eval" else ""
        texts = [query.full if query.context else lead + query.full for query in queries]
        coded = self.files.encoded(texts, special=self.preset == "minicons")
        if self.start == "auto" and self.bos is None and not self.preset:
            _log.warning("%s has no start token: first tokens are not scored; bos='TOKEN' names one", self.files.name)
        frame = Frame(self._before, self._after, len(lead), self.eos, self.files.positions)
        unknown = self.files.tokenizer.unk_token_id
        return [
            _tokens(index, query, each, frame, unknown)
            for index, (query, each) in enumerate(zip(queries, coded, strict=True))
        ]

    @property
    def _before(self) -> tuple[int, ...]:
        if self.bos is None:
            return ()
        if self.bos not in self.files.names:
            raise ModelError(f"{self.files.name} has no token {self.bos!r} to start with; choose another bos")
        return (self.files.names.index(self.bos),)

    @property
    def _after(self) -> tuple[int, ...]:
        if not self.eos and self.spaces == "leading":
            return ()
        if self.files.tokenizer.eos_token_id is None:
            raise ModelError(f"{self.files.name} has no end token; leave eos=True and spaces='trailing' away")
        return (self.files.tokenizer.eos_token_id,)

    def begin(self, batch: Sequence[Tokens]) -> Callable[[], list[TokenScores]]:
        """Begin a forward pass, and return what collects the log-probability of every wanted token."""
        names = self.files.names
        with enough_memory(f"{self.files.name}: a batch of {len(batch)} texts"):
            if self.spaces == "trailing":
                return self._trailing(batch)
            collect = self.forward([(each.ids, each.scored) for each in batch])
        return lambda: [each.said(part, names) for each, part in zip(batch, collect(), strict=True)]

    def _trailing(self, batch: Sequence[Tokens]) -> Callable[[], list[TokenScores]]:
        """Begin a forward pass whose answers count the space after a word to the word."""
        names, opening = self.files.names, self._opening
        rows = [(each.ids, sorted({*each.scored, *(place + 1 for place in each.scored)})) for each in batch]
        rows = [(ids, [place for place in places if place < len(ids)]) for ids, places in rows]
        collect = self.forward(rows, opening)
        opens = frozenset(opening.tolist())

        def moved() -> list[TokenScores]:
            return [
                each.said(_with_trailing_spaces(each, places, found, opens), names)
                for each, (_, places), found in zip(batch, rows, collect(), strict=True)
            ]

        return moved

    @once
    def _opening(self) -> NDArray[np.int64]:
        """The tokens that can follow a word once it has ended: those that begin with a space, and the end token."""
        opening = [number for number, name in enumerate(self.files.names) if name.startswith(_SPACES)]
        if not opening:
            raise ModelError(f"{self.files.name} has no tokens that begin with a space; leave spaces='trailing' away")
        return np.array(sorted({*opening, self.files.tokenizer.eos_token_id}))

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token, from one forward pass."""
        return self.begin(batch)()


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands before and after every text, and how long it may be with it."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    lead: int
    eos: bool
    limit: int


def _tokens(index: int, query: Query, coded: Any, frame: Frame, unknown: int | None) -> Tokens:
    first = len(frame.before)
    own = coded.ids
    ids = [*frame.before, *own, *frame.after]
    check_length(len(ids), frame.limit, index)
    lead = 0 if query.context else frame.lead
    scored: Sequence[int] = range(max(first, 1), first + len(own))
    if query.target or query.context:
        spans = [(a - lead, b - lead) for a, b in coded.offsets] if lead else coded.offsets
        scored = [place + first for place in in_target(query, spans) if place + first > 0]
    if not scored or (unknown is not None and all(ids[place] == unknown for place in scored)):
        raise QueryError(index, "the model scores none of its tokens: too short, or only unknown ones")
    if frame.eos and not query.target:
        scored = [*scored, first + len(own)]
    return Tokens(query, ids, scored, first, lead, coded)


def _with_trailing_spaces(
    each: Tokens, places: Sequence[int], found: NDArray[np.float32], opens: frozenset[int]
) -> NDArray[np.float32]:
    """Return log-probabilities in which a word begins for free, and pays for its end."""
    logprob, opening = (dict(zip(places, row.tolist(), strict=True)) for row in found)
    last = len(each.ids) - 1
    moved = []
    for place in each.scored:
        value = logprob[place]
        if each.ids[place] in opens:
            value -= opening[place]
        if place < last and each.ids[place + 1] in opens:
            value += opening[place + 1]
        moved.append(value)
    return np.array(moved, np.float32)


def open_model(
    place: str,
    *,
    bos: str | None = "auto",
    eos: bool = False,
    preset: str | None = None,
    spaces: str = "leading",
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Causal:
    """Return the causal model at a place."""
    if bos is not None and not isinstance(bos, str):
        raise ModelError(f"causal: bos is {bos!r}; expected a token, 'auto' or None")
    if preset is not None:
        checked_choice("preset", preset, PRESETS)
        if bos != "auto" or eos:
            raise ModelError(f"causal: preset={preset!r} says how a text is framed; leave bos and eos away")
    checked_choice("spaces", spaces, ("leading", "trailing"))
    files = checkpoint("causal", place, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    return Causal(files, bos, checked_bool("eos", eos), checked_dtype(dtype), device, preset, spaces)


def _sees_ahead(net: Any) -> bool:
    """Tell whether a change of the last token changes what is said of the first: a causal model cannot."""
    import torch

    ids = torch.tensor([[1, 2, 3, 3, 3, 3], [1, 2, 4, 5, 4, 5]], device=net.device)
    ids %= net.config.get_text_config().vocab_size
    with torch.inference_mode():
        first, second = net(input_ids=ids, use_cache=False).logits[:, 0].float()
    noise = 1e-5 if net.dtype == torch.float32 else 3e-2
    return bool((first - second).abs().max() > noise * first.abs().max().clamp(min=1.0))
