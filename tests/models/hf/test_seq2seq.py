"""Encoder-decoder transformers against plain loops written here."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_model
from acceptability.engine.local import run_queries
from acceptability.errors import ModelError, QueryError
from acceptability.models.hf import seq2seq_forward
from acceptability.models.kernels.verify import UnsupportedNetwork
from acceptability.types import Query
from tiny import TEXTS

torch = pytest.importorskip("torch")

LONG = "A linguist was reading the unacceptable sentences again!"
WORD = "unacceptable"
TARGET = (LONG.index(WORD), LONG.index(WORD) + len(WORD))


class Plain:
    """A network and its tokenizer, one text at a time, a full log-softmax."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.net = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        self.start = self.net.config.decoder_start_token_id
        self.is_t5 = self.net.config.model_type == "t5"

    def table(self, source: list[int], written: list[int]):
        """Return the log-probabilities of what comes after each token that the decoder has read."""
        with torch.no_grad():
            return (
                self.net(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[self.start, *written]]))
                .logits[0]
                .log_softmax(-1)
            )

    def encoding(self, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Return the framed tokens, the positions of the text's own, and their character spans."""
        encoding = self.tokenizer(text, return_offsets_mapping=True)
        frame = {self.tokenizer.bos_token_id, self.tokenizer.eos_token_id}
        own = [position for position, token in enumerate(encoding["input_ids"]) if token not in frame]
        return encoding["input_ids"], own, encoding["offset_mapping"]

    def lp(self, text: str, context: str = "", *, eos: bool = False) -> list[float]:
        ids, own, _ = self.encoding(text)
        table = self.table(self.tokenizer(context)["input_ids"], ids)
        return [float(table[position, ids[position]]) for position in ([*own, own[-1] + 1] if eos else own)]

    def pll(self, text: str) -> list[float]:
        ids, own, _ = self.encoding(text)
        return [self.filled(ids, [position])[0] for position in own]

    def filled(self, ids: list[int], positions: list[int]) -> list[float]:
        """Return the log-probabilities of neighbouring tokens when one gap replaces all of them."""
        first, last = positions[0], positions[-1]
        gap = self.tokenizer.convert_tokens_to_ids("<extra_id_0>" if self.is_t5 else "<mask>")
        source = [*ids[:first], gap, *ids[last + 1 :]]
        written, skipped = ([gap, *ids[first : last + 1]], 1) if self.is_t5 else (ids, first)
        table = self.table(source, written)[skipped:]
        return [float(table[position - first, ids[position]]) for position in positions]


@pytest.fixture(params=["t5", "bart"])
def folder(request, seq2seq_dir: Path, bart_dir: Path) -> Path:
    return seq2seq_dir if request.param == "t5" else bart_dir


@pytest.fixture
def plain(folder: Path) -> Plain:
    return Plain(folder)


def run_one(model, query: Query):
    (output,) = model.run(model.encode([query]))
    return output


def score_queries(model, queries: list[Query]) -> list[np.ndarray]:
    logprobs = {}
    for batch in run_queries(model, queries, lambda _: False):
        logprobs |= {index: output.logprobs for index, output in batch}
    return [logprobs[index] for index in range(len(queries))]


def same(output: list[np.ndarray], expected: list[list[float]]) -> bool:
    return all(actual.tolist() == pytest.approx(row, abs=1e-4) for actual, row in zip(output, expected, strict=True))


@pytest.mark.parametrize("variant", ["lp", "pll"])
def test_scores_equal_a_plain_loop_alone_in_batches_and_in_any_order(folder: Path, plain: Plain, variant: str) -> None:
    expected = [getattr(plain, variant)(text) for text in TEXTS]
    model = load_model(f"seq2seq:{folder}(variant={variant!r})")
    assert len({round(sum(row), 3) for row in expected}) == len(TEXTS), "a test that cannot fail"
    queries = [Query(text) for text in TEXTS]
    assert same([score_queries(model, [query])[0] for query in queries], expected)
    for seed in range(3):
        order = random.Random(seed).sample(range(len(TEXTS)), k=len(TEXTS))
        assert same(score_queries(model, [queries[index] for index in order]), [expected[index] for index in order])
    assert same([output.logprobs for output in model.run(model.encode(queries * 10))], expected * 10)


def test_a_network_takes_the_fast_path(folder: Path) -> None:
    assert isinstance(load_model(f"seq2seq:{folder}").forward, seq2seq_forward.BatchedSeq2SeqPath)


def test_an_unsupported_network_takes_the_plain_path(folder: Path, plain: Plain, monkeypatch, caplog) -> None:
    def reject(_: object) -> None:
        raise UnsupportedNetwork("its head cannot be separated from its body")

    monkeypatch.setattr(seq2seq_forward, "make_head_separable", reject)
    model = load_model(f"seq2seq:{folder}(variant='pll')")
    with caplog.at_level("INFO"):
        assert same(score_queries(model, [Query(text) for text in TEXTS]), [plain.pll(text) for text in TEXTS])
    assert "scored by a slower path, with the same scores: its head" in caplog.text
    assert isinstance(model.forward, seq2seq_forward.RowByRowSeq2SeqPath)


def test_scores_that_differ_make_the_network_take_the_plain_path(folder: Path, monkeypatch, caplog) -> None:
    whole = seq2seq_forward.compute_logprobs

    def wrong(*given):
        pending = whole(*given)
        return lambda: pending() + 0.5

    monkeypatch.setattr(seq2seq_forward, "compute_logprobs", wrong)
    with caplog.at_level("INFO"):
        assert isinstance(load_model(f"seq2seq:{folder}").forward, seq2seq_forward.RowByRowSeq2SeqPath)
    assert "scores would differ by 0.5" in caplog.text


def test_the_head_sees_a_few_scored_positions_at_a_time(folder: Path) -> None:
    """A whole table of batch, length and vocabulary would not fit into memory."""
    model = load_model(f"seq2seq:{folder}")
    items = model.encode([Query(text, target=(0, 3)) for text in TEXTS * 20])
    positions = sum(len(encoding.scored) for encoding in items)
    _ = model.forward
    seen = []
    head = model.net.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, given: seen.append(given[0].numel() // given[0].shape[-1]))
    model.run(items)
    hook.remove()
    assert sum(seen) == positions
    assert max(seen) <= 64


def test_the_encoder_reads_the_context(folder: Path, plain: Plain) -> None:
    model = load_model(f"seq2seq:{folder}")
    pairs = [("The cats sleep.", ""), ("The cats sleep.", "Who did the dog chase?"), (LONG, "No cat has")]
    expected = [plain.lp(text, context) for text, context in pairs]
    assert same(score_queries(model, [Query(text, context) for text, context in pairs]), expected)
    assert expected[0] != pytest.approx(expected[1], abs=1e-2)
    assert (
        run_one(model, Query("The cats sleep.", "No cat has")).offsets
        == run_one(model, Query("The cats sleep.")).offsets
    )


def test_a_context_is_neither_masked_nor_scored(folder: Path, plain: Plain) -> None:
    model = load_model(f"seq2seq:{folder}(variant='pll')")
    output = run_one(model, Query("cats sleep.", "The"))
    assert output.logprobs.tolist() == pytest.approx(plain.pll("The cats sleep.")[-len(output.tokens) :], abs=1e-4)
    assert output.offsets[0][0] == 0
    assert output.offsets[-1] == (10, 11)


def test_a_target_is_scored_alone(folder: Path) -> None:
    model = load_model(f"seq2seq:{folder}")
    for context in ("", "No cat has"):
        output, whole = run_one(model, Query(LONG, context, TARGET)), run_one(model, Query(LONG, context))
        kept = [lp for (a, b), lp in zip(whole.offsets, whole.logprobs, strict=True) if a < TARGET[1] and b > TARGET[0]]
        assert 1 < len(kept) < len(whole.tokens)
        assert output.logprobs.tolist() == pytest.approx(kept, abs=1e-5)
        assert "".join(LONG[a:b] for a, b in output.offsets).strip() == WORD


def test_one_gap_replaces_a_whole_target(folder: Path, plain: Plain) -> None:
    model = load_model(f"seq2seq:{folder}(variant='pll')")
    for context in ("", "No cat has"):
        query = Query(LONG, context, TARGET)
        start, end = query.text_start + TARGET[0], query.text_start + TARGET[1]
        ids, own, spans = plain.encoding(query.full_text)
        positions = [position for position in own if spans[position][0] < end and spans[position][1] > start]
        assert len(positions) > 1
        output = run_one(model, query)
        assert output.logprobs.tolist() == pytest.approx(plain.filled(ids, positions), abs=1e-4)
        assert "".join(LONG[a:b] for a, b in output.offsets).strip() == WORD


def test_eos_true_scores_the_end_token(folder: Path, plain: Plain) -> None:
    model = load_model(f"seq2seq:{folder}(eos=True)")
    output = run_one(model, Query("The cats sleep."))
    assert output.tokens[-1] == "</s>"
    assert output.offsets[-1] == (15, 15)
    assert output.logprobs.tolist() == pytest.approx(plain.lp("The cats sleep.", eos=True), abs=1e-4)
    assert "</s>" not in run_one(model, Query(LONG, target=TARGET)).tokens
    with pytest.raises(ModelError, match="leave out eos=True"):
        load_model(f"seq2seq:{folder}(variant='pll', eos=True)")


@pytest.mark.parametrize("variant", ["lp", "pll"])
def test_offsets_point_at_the_text(folder: Path, variant: str) -> None:
    output = run_one(load_model(f"seq2seq:{folder}(variant={variant!r})"), Query(LONG))
    # A space that the tokenizer puts before a text is not part of it.
    spans = [span for token, span in zip(output.tokens, output.offsets, strict=True) if token != "▁"]
    assert "".join(LONG[start:end] for start, end in spans).replace(" ", "") == LONG.replace(" ", "")


def test_options_are_in_the_signature_and_the_device_is_not(folder: Path) -> None:
    plain, hidden = load_model(f"seq2seq:{folder}(device='cpu')"), load_model(f"seq2seq:{folder}(variant='pll')")
    assert plain.signature.endswith("(variant='lp', eos=False, dtype='float32')")
    assert "variant='pll'" in hidden.signature
    assert "net" not in vars(plain)
    half = load_model(f"seq2seq:{folder}(dtype='bfloat16')")
    assert "dtype='bfloat16'" in half.signature
    queries = [Query(text) for text in TEXTS]
    ours = [float(logprobs.sum()) for logprobs in score_queries(half, queries)]
    assert ours == pytest.approx([float(logprobs.sum()) for logprobs in score_queries(plain, queries)], rel=0.1)


@pytest.mark.parametrize("variant", ["lp", "pll"])
def test_a_text_that_is_too_long_is_an_error_that_names_it(folder: Path, variant: str) -> None:
    model = load_model(f"seq2seq:{folder}(variant={variant!r})")
    for long in (Query("cats " * 100), Query("cats", context="cats " * 100)):
        with pytest.raises(QueryError, match="the model reads at most 64") as caught:
            model.encode([Query("The cats"), long])
        assert caught.value.index == 1


@pytest.mark.parametrize("variant", ["lp", "pll"])
def test_a_text_without_known_tokens_is_an_error(seq2seq_dir: Path, bart_dir: Path, variant: str) -> None:
    for folder, text in ((seq2seq_dir, "猫 犬"), (seq2seq_dir, ""), (bart_dir, "")):
        with pytest.raises(QueryError, match="knows none") as caught:
            load_model(f"seq2seq:{folder}(variant={variant!r})").encode([Query("The cats"), Query(text)])
        assert caught.value.index == 1


def test_models_of_other_kinds_are_refused(causal_dir: Path, masked_dir: Path) -> None:
    for folder in (causal_dir, masked_dir):
        with pytest.raises(ModelError, match="no encoder and decoder"):
            load_model(f"seq2seq:{folder}").encode([Query("The cats")])
    with pytest.raises(ModelError, match="expected one of 'lp', 'pll'"):
        load_model(f"seq2seq:{causal_dir}(variant='word_l2r')")


def changed(folder: Path, copy: Path, name: str, **values: object) -> Path:
    """Return a copy of a model with other values in one of its files."""
    shutil.copytree(folder, copy)
    (copy / name).write_text(json.dumps(json.loads((copy / name).read_text()) | values))
    return copy


def test_without_mask_or_sentinel_nothing_can_be_masked(bart_dir: Path, tmp_path: Path) -> None:
    folder = changed(bart_dir, tmp_path / "m", "tokenizer_config.json", mask_token=None)
    assert len(run_one(load_model(f"seq2seq:{folder}"), Query("The cats")).tokens) > 1
    with pytest.raises(ModelError, match="neither sentinels such as <extra_id_0> nor a mask token"):
        load_model(f"seq2seq:{folder}(variant='pll')").encode([Query("The cats")])


def test_a_decoder_without_a_start_is_refused(seq2seq_dir: Path, tmp_path: Path) -> None:
    folder = changed(seq2seq_dir, tmp_path / "m", "config.json", decoder_start_token_id=None)
    with pytest.raises(ModelError, match="which token its decoder starts with"):
        load_model(f"seq2seq:{folder}").encode([Query("The cats")])


def test_an_encoder_with_nothing_to_read_is_an_error(seq2seq_dir: Path, tmp_path: Path) -> None:
    folder = changed(seq2seq_dir, tmp_path / "m", "tokenizer.json", post_processor=None)
    model = load_model(f"seq2seq:{folder}")
    with pytest.raises(QueryError, match="no context") as caught:
        model.encode([Query("The cats", context="No"), Query("The cats")])
    assert caught.value.index == 1


def test_pickle_weights_are_refused_unless_allowed(seq2seq_dir: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM

    folder = tmp_path / "pickled"
    shutil.copytree(seq2seq_dir, folder)
    torch.save(AutoModelForSeq2SeqLM.from_pretrained(seq2seq_dir).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"seq2seq:.*allow_pickle=True"):
        load_model(f"seq2seq:{folder}")
    trusted, plain = load_model(f"seq2seq:{folder}(allow_pickle=True)"), load_model(f"seq2seq:{seq2seq_dir}")
    assert run_one(trusted, Query(LONG)).logprobs == pytest.approx(run_one(plain, Query(LONG)).logprobs, abs=1e-5)
