"""Sentences drawn from a causal transformer, some at once, each after the model's start token.

A model that was trained on single sentences ends them itself, with its end token. One that was trained on documents
goes on after the first sentence: the first line is taken, up to where a new sentence begins in it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch

from acceptability.errors import ModelError
from acceptability.models.causal import Causal
from acceptability.models.recurrent_sampling import picked

_BOUNDARY = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[A-Z0-9])")
_SHORTENED = re.compile(r"(?:^|[\s(\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|Lt|Sr|Jr|vs|etc|No|Fig)\.\Z")
_TOKENS_PER_WORD = 3


def first_sentence(text: str) -> tuple[str, bool]:
    """Return the first sentence of a text, and whether anything follows it.

    >>> first_sentence(" Mr. Fox left. He was ill.")
    ('Mr. Fox left.', True)
    >>> first_sentence("Who left?")
    ('Who left?', False)
    """
    line, newline, _ = text.strip().partition("\n")
    for found in _BOUNDARY.finditer(line):
        if not _SHORTENED.search(line[: found.start()]):
            return line[: found.end()], True
    return line.rstrip(), bool(newline)


class Sampler:
    """Draws sentences from a network: never a special token but the end, nor a number that stands for no token."""

    def __init__(self, model: Causal, longest: int, temperature: float) -> None:
        if not model._before:
            raise ModelError(f"{model.files.name} has no start token to begin a sentence after; name one: bos='TOKEN'")
        if model.spaces != "leading" or model.preset:
            raise ModelError(
                f"{model.files.name}: spaces and presets say how to score; leave them away to draw from it"
            )
        self.tokenizer, self.start = model.files.tokenizer, model._before
        self.net: Any = model.files.net("AutoModelForCausalLM", dtype=model.dtype, device=model.device)
        self.longest, self.temperature = longest, temperature
        self.most = min(_TOKENS_PER_WORD * longest, model.files.positions - len(self.start))
        self.ends = {*self.start, self.tokenizer.eos_token_id} - {None}
        size = self.net.config.get_text_config().vocab_size
        nameless = {
            number for number in range(size) if number >= len(model.files.names) or not model.files.names[number]
        }
        self.banned = frozenset((set(self.tokenizer.all_special_ids) | nameless) - self.ends)

    @torch.inference_mode()
    def texts(self, count: int, random: np.random.Generator) -> list[str | None]:
        """Return sentences; None for one that has not ended after so many words."""
        drawn: list[list[int]] = [[] for _ in range(count)]
        found: list[str | None] = [None] * count
        going, past = list(range(count)), None
        ids = torch.tensor([self.start] * count, device=self.net.device)
        for _ in range(self.most):
            out = self.net(input_ids=ids, past_key_values=past, use_cache=True)
            words = picked(out.logits[:, -1].float().log_softmax(1), self.temperature, self.banned, random)
            kept = []
            for place, (row, word) in enumerate(zip(going, words.tolist(), strict=True)):
                drawn[row].append(word)
                text, is_over = self._told(drawn[row])
                if is_over:
                    found[row] = text if len(text.split()) <= self.longest else None
                else:
                    kept.append(place)
            going = [going[place] for place in kept]
            if not going:
                break
            rows = torch.tensor(kept, device=self.net.device)
            past, ids = out.past_key_values, words[rows].unsqueeze(1)
            if len(kept) < len(words):
                past.batch_select_indices(rows)
        return found

    def _told(self, tokens: list[int]) -> tuple[str, bool]:
        """Return the first sentence of what was drawn, and whether it has ended."""
        has_ended = tokens[-1] in self.ends
        text = self.tokenizer.decode(tokens[:-1] if has_ended else tokens)
        sentence, more = first_sentence(text)
        # A line that begins empty has no sentence in it yet.
        return sentence, has_ended or (more and bool(sentence))
