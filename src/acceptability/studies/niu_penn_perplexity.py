"""Table 1 of Niu and Penn (2020) for a model of the user's own: its perplexity on texts of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptability.errors import ModelError, SpellingError
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell
from acceptability.studies.niu_penn_pbc import Number, model_cell
from acceptability.studies.niu_penn_texts import Text
from acceptability.train.perplexity import Perplexity, is_improper, is_masked, perplexity, pseudo_perplexity, with_end

RULE = "split"
"""How words are counted, whatever the model's own tokens are, so that perplexities can be compared."""

_COLUMN = "text of --corpus"
_NEEDS = "needs plain text that the model was not trained on, one sentence a line: add --corpus FILE"
_NO_END = (
    "a model of this kind does not foretell where a sentence ends, and so gives no text a probability: "
    "it has no perplexity (a masked model sees both sides of each word, a classifier sees no words, uniform no ends)"
)
_IMPROPER = (
    "improper: the probabilities of all words sum to more than 1, so that this only looks like a perplexity; the paper "
    "prints its own for what it calls a softmax on already softmaxed values"
)
_PSEUDO = (
    "a pseudo-perplexity: each word was foretold from both sides (Salazar et al. 2020), so that it compares with those "
    "of masked models of the same variant only, and with no perplexity"
)


def table_1(model: str, texts: Sequence[Text], progress: Progress | None) -> list[Cell]:
    """Return the perplexity for a word of each text, or why there is none; a masked model's pseudo-perplexity too."""
    if not texts:
        return [model_cell("Table 1", model, _COLUMN, (None, _NEEDS), model)]
    return [cell for text in texts for cell in _of_text(model, text, progress)]


def _of_text(model: str, text: Text, progress: Progress | None) -> Iterator[Cell]:
    yield model_cell("Table 1", model, text.name, _number(model, text, progress), model)
    if is_masked(model):
        number = _pseudo_number(model, text, progress)
        yield model_cell("Table 1", model, f"pseudo-perplexity, {text.name}", number, model)


def _number(model: str, text: Text, progress: Progress | None) -> Number:
    try:
        with_end(model)
    except SpellingError:
        return None, _NO_END
    improper = is_improper(model)
    try:
        found = perplexity(model, text.corpus, words=RULE, improper=improper, progress=progress)
    except ModelError as error:
        return None, str(error)
    return found.perplexity, "; ".join(filter(None, (_IMPROPER if improper else "", _note(found, text))))


def _pseudo_number(model: str, text: Text, progress: Progress | None) -> Number:
    try:
        found = pseudo_perplexity(model, text.corpus, words=RULE, progress=progress)
    except ModelError as error:
        return None, str(error)
    return found.pseudo_perplexity, (
        f"{_PSEUDO}; on {_names(text)}: {found.words:,} words by the rule {RULE!r}, without ends of sentences; "
        f"{found.signature}"
    )


def _note(found: Perplexity, text: Text) -> str:
    unknown = "" if found.unknown is None else f", {found.unknown:,} of them unknown"
    return (
        f"on {_names(text)}, another text than the BNC and WikiText-103: it compares with others on this text, and "
        f"not with the paper's; {found.words:,} words by the rule {RULE!r}, ends of sentences among them{unknown}; "
        f"{found.signature}"
    )


def _names(text: Text) -> str:
    """Return the text with its files, unless it is one."""
    files = [path.name for path in text.corpus.files]
    if len(files) == 1 and text.name.endswith(files[0]):
        return text.name
    return f"{text.name} ({', '.join(files[:3])}{'…' if len(files) > 3 else ''})"
