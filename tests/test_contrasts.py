"""The surprisal of targets against plain loops of transformers, and which contrasts count."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.contrasts import groups, in_bits, target_contrasts
from acceptability.errors import ModelError, SuiteError
from acceptability.measures.contrast import ClozePair
from acceptability.measures.interaction import Cutoffs
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Sentence, Suite, contrast

torch = pytest.importorskip("torch")

PAIRS = {
    "one": ("The cat is here.", "The cat was here."),
    "many": ("He is sleeping.", "He is chased."),
    "moved": ("It is the cat.", "It the cat is."),
    "put in": ("She has a cat.", "She has ever a cat."),
    "out": ("I think that it is.", "I think it is."),
    "twice": ("I think that it is.", "It thinks he was."),
}


def suite(*names: str, **tags: str) -> Suite:
    members = [
        [
            Sentence(f"{name}/{role}", text, tags={"item": name} | tags)
            for role, text in zip(("good", "bad"), PAIRS[name], strict=True)
        ]
        for name in names or PAIRS
    ]
    contrasts = tuple(contrast(good, bad) for good, bad in members)
    return Suite("s", tuple(each for pair in members for each in pair), contrasts)


def plain_masked(folder: Path, text: str, target: str, count: int) -> float:
    """Mask all tokens of a word at once, and add up what they are worth."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"]
    own = tokenizer(target, add_special_tokens=False)["input_ids"]
    assert len(own) == count
    start = next(place for place in range(len(ids)) if ids[place : place + len(own)] == own)
    shown = [*ids[:start], *[tokenizer.mask_token_id] * len(own), *ids[start + len(own) :]]
    with torch.no_grad():
        table = net(torch.tensor([shown])).logits[0].log_softmax(-1)
    return -float(sum(table[start + place, own[place]] for place in range(len(own))))


def plain_causal(folder: Path, text: str, target: str) -> float:
    """Add up the tokens of a word, each after those before it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForCausalLM.from_pretrained(folder).eval()
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids = [tokenizer.bos_token_id, *coded["input_ids"]]
    start = text.index(f" {target}") + 1
    inside = [
        place for place, (a, b) in enumerate(coded["offset_mapping"], start=1) if b > start and a < start + len(target)
    ]
    with torch.no_grad():
        table = net(torch.tensor([ids])).logits[0].log_softmax(-1)
    return -float(sum(table[place - 1, ids[place]] for place in inside))


def test_targets_of_a_masked_model_equal_a_plain_loop(masked_dir: Path) -> None:
    found = target_contrasts(suite(), f"masked:{masked_dir}", multi_token=True)
    rows = {str(row["contrast"]).partition("/")[0]: row for row in found.rows()}
    expected = {
        "one": (("is", 1), ("was", 1)),
        "many": (("sleeping", 2), ("chased", 2)),
        "moved": (("is", 1), ("is", 1)),
        "put in": (("has", 1), ("has", 1)),
        "out": (("think", 1), ("think", 1)),
    }
    assert set(rows) == set(expected)
    for name, targets in expected.items():
        for role, text, (target, count) in zip(("better", "worse"), PAIRS[name], targets, strict=True):
            assert rows[name][f"{role}_target"] == target
            plain = plain_masked(masked_dir, text, target, count)
            assert rows[name][f"{role}_surprisal_bits"] == pytest.approx(in_bits(plain), abs=1e-4)
    assert {name: row["tokens"] for name, row in rows.items()} == {name: 2 if name == "many" else 1 for name in rows}
    assert len({row["better_surprisal_bits"] for row in rows.values()}) == len(rows), "a test that cannot fail"


def test_targets_of_a_causal_model_equal_a_plain_loop(causal_dir: Path) -> None:
    found = target_contrasts(suite(), f"causal:{causal_dir}", side="right", multi_token=True)
    rows = {str(row["contrast"]).partition("/")[0]: row for row in found.rows()}
    assert [rows["put in"][f"{role}_target"] for role in ("better", "worse")] == ["a", "a"]
    assert [rows["out"][f"{role}_target"] for role in ("better", "worse")] == ["it", "it"]
    for name, row in rows.items():
        for role, text in zip(("better", "worse"), PAIRS[name], strict=True):
            plain = plain_causal(causal_dir, text, str(row[f"{role}_target"]))
            assert row[f"{role}_surprisal_bits"] == pytest.approx(in_bits(plain), abs=1e-4)
    assert max(int(str(row["tokens"])) for row in rows.values()) > 1


def test_to_a_causal_model_the_word_before_an_insertion_is_a_tie(causal_dir: Path, masked_dir: Path) -> None:
    found = target_contrasts(suite("put in", "out"), f"causal:{causal_dir}", multi_token=True)
    assert all(row["better_surprisal_bits"] == row["worse_surprisal_bits"] for row in found.rows())
    assert next(note for note in found.notes() if "--side right" in note).startswith("2 contrasts tie")
    assert not target_contrasts(suite("put in", "out"), f"masked:{masked_dir}").notes()


def test_targets_of_several_tokens_are_left_out_unless_asked_for_or_marked(masked_dir: Path) -> None:
    model = f"masked:{masked_dir}"
    found = target_contrasts(suite(), model)
    assert [(each.contrast, each.reason) for each in found.exclusions] == [
        ("many/good > many/bad", "several tokens"),
        ("twice/good > twice/bad", "more than one difference"),
    ]
    assert found.notes()[0] == "1 contrasts left out: several tokens"
    assert len(target_contrasts(suite(), model, multi_token=True).suite.contrasts) == 5
    assert len(target_contrasts(suite("many", nonword="sleeping"), model).suite.contrasts) == 1
    with pytest.raises(SuiteError, match=r"several tokens \(1\)\. With --multi-token"):
        target_contrasts(suite("many"), model)


def test_cloze_pairs_may_leave_out_words_of_several_tokens(masked_dir: Path) -> None:
    found = target_contrasts(suite("one", "many"), f"masked:{masked_dir}", multi_token=True)
    assert len(ClozePair().units(found.suite, found.scores)) == 2
    rows = ClozePair(single_token=True).units(found.suite, found.scores)
    assert rows.notes == ("1 contrasts left out: several tokens",)
    first, _ = found.rows()
    assert rows["correct"].tolist() == [first["worse_surprisal_bits"] > first["better_surprisal_bits"]]


def test_a_target_that_the_model_has_no_token_for_is_left_out(masked_dir: Path) -> None:
    good, bad = Sentence("g", "The cat is 猫 here."), Sentence("b", "The cat is 犬 here.")
    others = suite("one")
    whole = Suite("s", (*others.sentences, good, bad), (*others.contrasts, contrast(good, bad)))
    found = target_contrasts(whole, f"masked:{masked_dir}")
    assert [(each.contrast, each.reason) for each in found.exclusions] == [
        ("g > b", "the model knows none of its tokens")
    ]
    assert len(found.suite.contrasts) == 1


def test_a_first_word_that_a_model_does_not_score_is_left_out(causal_dir: Path) -> None:
    good, bad = Sentence("g", "A cat is here."), Sentence("b", "I cat is here.")
    others = suite("one")
    whole = Suite("s", (*others.sentences, good, bad), (*others.contrasts, contrast(good, bad)))
    found = target_contrasts(whole, f"causal:{causal_dir}(bos=None)", multi_token=True)
    assert [each.contrast for each in found.exclusions] == ["g > b"]


def test_a_text_that_is_too_long_is_an_error_and_a_classifier_is_refused(
    masked_dir: Path, classifier_dir: Path
) -> None:
    good, bad = (Sentence(each, f"The cat {each} " + "very " * 80 + "late.") for each in ("is", "was"))
    with pytest.raises(ModelError, match="reads at most 64"):
        target_contrasts(Suite("s", (good, bad), (contrast(good, bad),)), f"masked:{masked_dir}")
    with pytest.raises(SuiteError, match=r"a classifier judges whole sentences, not regions or continuations \(5\)"):
        target_contrasts(suite(), f"classifier:{classifier_dir}")


def test_nothing_is_scored_twice(masked_dir: Path) -> None:
    told: list[tuple[int, int]] = []

    def progress(_: str, done: int, total: int) -> None:
        told.append((done, total))

    target_contrasts(suite("one"), f"masked:{masked_dir}")
    target_contrasts(suite("one", "moved"), f"masked:{masked_dir}", progress=progress)
    assert told[0] == (2, 4)


def test_groups_have_both_numbers_and_their_class(masked_dir: Path) -> None:
    found = target_contrasts(suite(), f"masked:{masked_dir}", multi_token=True)
    parts = groups(found, "edit", bootstrap=Bootstrap(0))
    assert [each.name for each in parts] == [
        "all",
        "edit=substitution",
        "edit=movement",
        "edit=insertion",
        "edit=deletion",
    ]
    rows = list(found.rows())
    bits = [(float(str(row["better_surprisal_bits"])), float(str(row["worse_surprisal_bits"]))) for row in rows]
    whole = parts[0]
    assert whole.directionality.value == pytest.approx(sum(b > a for a, b in bits) / 5)
    assert whole.repulsion.value == pytest.approx(sum(abs(a - b) / (a + b) for a, b in bits) / 5)
    assert whole.better_surprisal_bits == pytest.approx(sum(a for a, _ in bits) / 5)
    assert parts[1].worse_surprisal_bits == pytest.approx((bits[0][1] + bits[1][1]) / 2)
    strict = groups(found, "edit", cutoffs=Cutoffs(2, 1.5, 0, 0), bootstrap=Bootstrap(0))
    assert {each.verdict for each in strict} == {"strongly mis-learned"}


def test_a_tag_that_no_contrast_has_is_refused_before_anything_is_scored(masked_dir: Path) -> None:
    told: list[str] = []
    with pytest.raises(SuiteError, match="have no tag 'phenomenon'; they have contrast, edit, item"):
        target_contrasts(
            suite(), f"masked:{masked_dir}", by="phenomenon", progress=lambda *each: told.append(str(each))
        )
    assert told == []
