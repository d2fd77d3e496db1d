"""Table 1 of Niu and Penn (2020) for a model of the user's own: its perplexity on a text of the user's own."""

from __future__ import annotations

from acceptability.errors import ModelError, SpellingError
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell
from acceptability.studies.niu_penn_pbc import Number, model_cell
from acceptability.train.corpus import Corpus
from acceptability.train.perplexity import Perplexity, perplexity, with_end

RULE = "split"
"""How words are counted, whatever the model's own tokens are, so that perplexities can be compared."""

_COLUMN = "text of --corpus"
_NO_END = (
    "a model of this kind does not foretell where a sentence ends, and so gives no text a probability: "
    "it has no perplexity (a masked model sees both sides of each word, a classifier sees no words, uniform no ends)"
)


def table_1(model: str, text: Corpus | None, progress: Progress | None) -> list[Cell]:
    """Return the perplexity for a word of a text, or why there is none."""
    return [model_cell("Table 1", model, _COLUMN, _number(model, text, progress), model)]


def _number(model: str, text: Corpus | None, progress: Progress | None) -> Number:
    if text is None:
        return None, "needs plain text that the model was not trained on, one sentence a line: add --corpus FILE"
    try:
        with_end(model)
    except SpellingError:
        return None, _NO_END
    try:
        found = perplexity(model, text, words=RULE, progress=progress)
    except ModelError as error:
        return None, str(error)
    return found.perplexity, _note(found, text)


def _note(found: Perplexity, text: Corpus) -> str:
    names = ", ".join(path.name for path in text.files[:3]) + ("…" if len(text.files) > 3 else "")
    unknown = "" if found.unknown is None else f", {found.unknown:,} of them unknown"
    return (
        f"on {names}, another text than the BNC and WikiText-103: it cannot be set beside the paper's, only beside "
        f"others on this text; {found.words:,} words by the rule {RULE!r}, ends of sentences among them{unknown}; "
        f"{found.signature}"
    )
