"""Surprisals of targets against plain loops over transformers, and which contrasts are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.api.contrasts import group_contrasts, nats_to_bits, score_target_contrasts
from acceptability.errors import ModelError, SuiteError
from acceptability.measures.target_contrast import ClozePair, Cutoffs
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Sentence, Suite, make_contrast

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
    contrasts = tuple(make_contrast(good, bad) for good, bad in members)
    return Suite("s", tuple(sentence for pair in members for sentence in pair), contrasts)


def plain_masked(folder: Path, text: str, target: str, count: int) -> float:
    """Return the surprisal of a word in nats: mask all its tokens together, and add up their log-probabilities."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer(text)["input_ids"]
    target_ids = tokenizer(target, add_special_tokens=False)["input_ids"]
    assert len(target_ids) == count
    start = next(position for position in range(len(ids)) if ids[position : position + len(target_ids)] == target_ids)
    masked = [*ids[:start], *[tokenizer.mask_token_id] * len(target_ids), *ids[start + len(target_ids) :]]
    with torch.no_grad():
        table = net(torch.tensor([masked])).logits[0].log_softmax(-1)
    return -float(sum(table[start + position, target_ids[position]] for position in range(len(target_ids))))


def plain_causal(folder: Path, text: str, target: str) -> float:
    """Return the surprisal of a word in nats, predicted token by token from the left."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    net = AutoModelForCausalLM.from_pretrained(folder).eval()
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids = [tokenizer.bos_token_id, *encoded["input_ids"]]
    start = text.index(f" {target}") + 1
    inside = [
        position
        for position, (a, b) in enumerate(encoded["offset_mapping"], start=1)
        if b > start and a < start + len(target)
    ]
    with torch.no_grad():
        table = net(torch.tensor([ids])).logits[0].log_softmax(-1)
    return -float(sum(table[position - 1, ids[position]] for position in inside))


def test_targets_of_a_masked_model_equal_a_plain_loop(masked_dir: Path) -> None:
    scored = score_target_contrasts(suite(), f"masked:{masked_dir}", multi_token=True)
    rows = {str(row["contrast"]).partition("/")[0]: row for row in scored.rows()}
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
            assert rows[name][f"{role}_surprisal_bits"] == pytest.approx(nats_to_bits(plain), abs=1e-4)
    assert {name: row["tokens"] for name, row in rows.items()} == {name: 2 if name == "many" else 1 for name in rows}
    assert len({row["better_surprisal_bits"] for row in rows.values()}) == len(rows), "a test that cannot fail"


def test_targets_of_a_causal_model_equal_a_plain_loop(causal_dir: Path) -> None:
    scored = score_target_contrasts(suite(), f"causal:{causal_dir}", side="right", multi_token=True)
    rows = {str(row["contrast"]).partition("/")[0]: row for row in scored.rows()}
    assert [rows["put in"][f"{role}_target"] for role in ("better", "worse")] == ["a", "a"]
    assert [rows["out"][f"{role}_target"] for role in ("better", "worse")] == ["it", "it"]
    for name, row in rows.items():
        for role, text in zip(("better", "worse"), PAIRS[name], strict=True):
            plain = plain_causal(causal_dir, text, str(row[f"{role}_target"]))
            assert row[f"{role}_surprisal_bits"] == pytest.approx(nats_to_bits(plain), abs=1e-4)
    assert max(int(str(row["tokens"])) for row in rows.values()) > 1


def test_the_word_before_an_insertion_ties_for_a_causal_model(causal_dir: Path, masked_dir: Path) -> None:
    scored = score_target_contrasts(suite("put in", "out"), f"causal:{causal_dir}", multi_token=True)
    assert all(row["better_surprisal_bits"] == row["worse_surprisal_bits"] for row in scored.rows())
    assert next(note for note in scored.notes() if "--side right" in note).startswith("2 contrasts tie")
    assert not score_target_contrasts(suite("put in", "out"), f"masked:{masked_dir}").notes()


def test_targets_of_several_tokens_are_left_out_unless_requested_or_marked(masked_dir: Path) -> None:
    model = f"masked:{masked_dir}"
    scored = score_target_contrasts(suite(), model)
    assert [(exclusion.contrast, exclusion.reason) for exclusion in scored.exclusions] == [
        ("many/good > many/bad", "several tokens"),
        ("twice/good > twice/bad", "more than one difference"),
    ]
    assert scored.notes()[0] == "1 contrasts left out: several tokens"
    assert len(score_target_contrasts(suite(), model, multi_token=True).suite.contrasts) == 5
    assert len(score_target_contrasts(suite("many", nonword="sleeping"), model).suite.contrasts) == 1
    with pytest.raises(SuiteError, match=r"several tokens \(1\)\. With --multi-token"):
        score_target_contrasts(suite("many"), model)


def test_cloze_pairs_may_leave_out_words_of_several_tokens(masked_dir: Path) -> None:
    scored = score_target_contrasts(suite("one", "many"), f"masked:{masked_dir}", multi_token=True)
    assert len(ClozePair().units(scored.suite, scored.scores)) == 2
    rows = ClozePair(single_token=True).units(scored.suite, scored.scores)
    assert rows.notes == ("1 contrasts left out: several tokens",)
    first, _ = scored.rows()
    assert rows["correct"].tolist() == [first["worse_surprisal_bits"] > first["better_surprisal_bits"]]


def test_a_target_that_the_model_has_no_token_for_is_left_out(masked_dir: Path) -> None:
    good, bad = Sentence("g", "The cat is 猫 here."), Sentence("b", "The cat is 犬 here.")
    others = suite("one")
    whole = Suite("s", (*others.sentences, good, bad), (*others.contrasts, make_contrast(good, bad)))
    scored = score_target_contrasts(whole, f"masked:{masked_dir}")
    assert [(exclusion.contrast, exclusion.reason) for exclusion in scored.exclusions] == [
        ("g > b", "the model knows none of its tokens")
    ]
    assert len(scored.suite.contrasts) == 1


def test_a_first_word_that_a_model_does_not_score_is_left_out(causal_dir: Path) -> None:
    good, bad = Sentence("g", "A cat is here."), Sentence("b", "I cat is here.")
    others = suite("one")
    whole = Suite("s", (*others.sentences, good, bad), (*others.contrasts, make_contrast(good, bad)))
    scored = score_target_contrasts(whole, f"causal:{causal_dir}(bos=None)", multi_token=True)
    assert [exclusion.contrast for exclusion in scored.exclusions] == ["g > b"]


def test_a_text_that_is_too_long_is_an_error_and_a_classifier_is_refused(
    masked_dir: Path, classifier_dir: Path
) -> None:
    good, bad = (Sentence(verb, f"The cat {verb} " + "very " * 80 + "late.") for verb in ("is", "was"))
    with pytest.raises(ModelError, match="reads at most 64"):
        score_target_contrasts(Suite("s", (good, bad), (make_contrast(good, bad),)), f"masked:{masked_dir}")
    with pytest.raises(SuiteError, match=r"a classifier judges whole sentences, not regions or continuations \(5\)"):
        score_target_contrasts(suite(), f"classifier:{classifier_dir}")


def test_nothing_is_scored_twice(masked_dir: Path) -> None:
    calls: list[tuple[int, int]] = []

    def progress(_: str, done: int, total: int) -> None:
        calls.append((done, total))

    score_target_contrasts(suite("one"), f"masked:{masked_dir}")
    score_target_contrasts(suite("one", "moved"), f"masked:{masked_dir}", progress=progress)
    assert calls[0] == (2, 4)


def test_groups_have_both_measures_and_a_class(masked_dir: Path) -> None:
    scored = score_target_contrasts(suite(), f"masked:{masked_dir}", multi_token=True)
    groups = group_contrasts(scored, "edit", bootstrap=Bootstrap(0))
    assert [group.name for group in groups] == [
        "all",
        "edit=substitution",
        "edit=movement",
        "edit=insertion",
        "edit=deletion",
    ]
    rows = list(scored.rows())
    bits = [(float(str(row["better_surprisal_bits"])), float(str(row["worse_surprisal_bits"]))) for row in rows]
    whole = groups[0]
    assert whole.directionality.value == pytest.approx(sum(b > a for a, b in bits) / 5)
    assert whole.repulsion.value == pytest.approx(sum(abs(a - b) / (a + b) for a, b in bits) / 5)
    assert whole.better_surprisal_bits == pytest.approx(sum(a for a, _ in bits) / 5)
    assert groups[1].worse_surprisal_bits == pytest.approx((bits[0][1] + bits[1][1]) / 2)
    strict = group_contrasts(scored, "edit", cutoffs=Cutoffs(2, 1.5, 0, 0), bootstrap=Bootstrap(0))
    assert {group.interaction_class for group in strict} == {"strongly mis-learned"}


def test_an_unknown_tag_is_refused_before_anything_is_scored(masked_dir: Path) -> None:
    calls: list[str] = []
    with pytest.raises(SuiteError, match="have no tag 'phenomenon'; they have contrast, edit, item"):
        score_target_contrasts(
            suite(), f"masked:{masked_dir}", by="phenomenon", progress=lambda *arguments: calls.append(str(arguments))
        )
    assert calls == []
