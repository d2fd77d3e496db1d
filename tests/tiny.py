"""Tiny models, made here: real architectures of transformers with two layers and a fixed seed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The cats sleep.",
    "The cats that the dog chased have slept since noon.",
    "A linguist was reading the unacceptable sentences again!",
    "Who did the dog chase?",
    "He is sleeping, she isn't.",
    "No cat has ever chased the unbelievably large dog.",
    "I think that it rains.",
]
TEXTS = [*SENTENCES, "The dog chased the cats.", "Cats", "ever since noon the dog has slept and slept and slept."]


@pytest.fixture(scope="session")
def causal_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 with a byte-level vocabulary and a start token."""
    return make_causal(tmp_path_factory.mktemp("tiny-causal"))


def make_causal(folder: Path) -> Path:
    """Save the tiny GPT-2 in a folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|end|>", eos_token="<|end|>")
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(fast), n_positions=64, n_embd=32, n_layer=2, n_head=2, initializer_range=0.3, bos_token_id=0
    )
    return _saved(GPT2LMHeadModel(config), fast, folder)


@pytest.fixture(scope="session")
def recurrent_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM of words with tied adaptive softmax."""
    return make_recurrent(tmp_path_factory.mktemp("tiny-recurrent"))


def make_recurrent(folder: Path, cell: str = "lstm", output: str = "tas", directions: int = 1) -> Path:
    """Save a tiny recurrent network, which was not trained, in a folder."""
    import torch

    from acceptability.models.recurrent import RecurrentShape
    from acceptability.models.recurrent.network import RecurrentNetwork, serialize_recurrent_network
    from acceptability.text.words import SPECIAL_WORDS, Vocabulary

    words = sorted({word for text in TEXTS for word in text.replace(".", " .").split()} - {"noon"})
    known = Vocabulary((*SPECIAL_WORDS, *words), "split", lower=False)
    torch.manual_seed(3)
    shape = RecurrentShape(cell, len(known), 6, 10, 2, output, (0, 5, 9, len(known)), directions)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(serialize_recurrent_network(RecurrentNetwork(shape)))
    (folder / "vocabulary.json").write_bytes(known.to_json())
    return folder


@pytest.fixture(scope="session")
def masked_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with a WordPiece vocabulary that splits longer words."""
    return make_masked(tmp_path_factory.mktemp("tiny-masked"))


def make_masked(folder: Path) -> Path:
    """Save the tiny BERT in a folder."""
    from transformers import BertForMaskedLM

    return _bert(BertForMaskedLM, folder)


@pytest.fixture(scope="session")
def classifier_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with a head of two labels."""
    from transformers import BertForSequenceClassification

    return _bert(BertForSequenceClassification, tmp_path_factory.mktemp("tiny-classifier"))


def bert_tokenizer(tokens: Iterable[str]) -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer of these tokens, in the one way that transformers 4 and 5 share: from a file."""
    from transformers import BertTokenizerFast

    with TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.txt"
        file.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        return BertTokenizerFast(str(file))


def _bert(head: type, folder: Path) -> Path:
    import torch
    from transformers import BertConfig, BertModel

    words = (
        "the cat dog sleep chase who did he is she i think that it rain no has ever a was read large since noon have"
    )
    pieces = [
        "##s",
        "##ing",
        "##d",
        "##ed",
        "##pt",
        "un",
        "##believ",
        "##ably",
        "##accept",
        "##able",
        "again",
        "n",
        "t",
    ]
    letters = [chr(code) for code in range(97, 123)] + [f"##{chr(code)}" for code in range(97, 123)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words.split(), *pieces, *letters, *".,?!'"]
    folder.mkdir(exist_ok=True)
    tokenizer = bert_tokenizer(dict.fromkeys(vocabulary))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
        num_labels=2,
    )
    torch.manual_seed(2)
    net = head(config)
    if hasattr(net, "cls"):
        # Drawn as transformers 5 draws it: after the body, and after what torch draws for the two layers of the head
        # (the one to the vocabulary has no bias in transformers 4, so that another number follows).
        torch.manual_seed(2)
        BertModel(config, add_pooling_layer=False)
        torch.nn.Linear(config.hidden_size, config.hidden_size)
        torch.nn.Linear(config.hidden_size, config.vocab_size)
        torch.nn.init.normal_(net.cls.predictions.transform.dense.weight, std=config.initializer_range)
    return _saved(net, tokenizer, folder)


@pytest.fixture(scope="session")
def seq2seq_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 with a unigram vocabulary and sentinels."""
    return make_t5(tmp_path_factory.mktemp("tiny-t5"))


def make_t5(folder: Path) -> Path:
    """Save the tiny T5 in a folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>"]
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    torch.manual_seed(4)
    config = T5Config(
        vocab_size=len(fast) + 3,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        initializer_factor=1.5,
        decoder_start_token_id=0,
    )
    return _saved(T5ForConditionalGeneration(config), fast, folder)


@pytest.fixture(scope="session")
def bart_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BART with a byte-level vocabulary, a mask token, and a bias on its logits."""
    return make_bart(tmp_path_factory.mktemp("tiny-bart"))


def make_bart(folder: Path) -> Path:
    """Save the tiny BART in a folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    torch.manual_seed(5)
    config = BartConfig(
        vocab_size=len(fast),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        init_std=0.3,
        decoder_start_token_id=2,
    )
    net = BartForConditionalGeneration(config)
    net.final_logits_bias.normal_()
    return _saved(net, fast, folder)


def _saved(net: object, tokenizer: object, folder: Path) -> Path:
    net.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def arpa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bigram on ten sentences, as an ARPA file: relative frequencies with half the mass for back-off."""
    path = tmp_path_factory.mktemp("arpa") / "tiny.arpa"
    path.write_text(arpa_text(TEXTS), encoding="utf-8")
    return path


def arpa_text(sentences: list[str], *, unknown: bool = True) -> str:
    """Return a bigram model with back-off, normalised in its unigrams."""
    tokens = [["<s>", *sentence.split(), "</s>"] for sentence in sentences]
    unigrams = Counter(word for words in tokens for word in words if word != "<s>")
    unigrams |= Counter({"<unk>": 1} if unknown else {})
    total = sum(unigrams.values())
    bigrams = Counter(pair for words in tokens for pair in pairwise(words))
    first = Counter(pair[0] for pair in bigrams.elements())
    lines = [
        "\\data\\",
        f"ngram 1={len(unigrams) + 1}",
        f"ngram 2={len(bigrams)}",
        "",
        "\\1-grams:",
        "-99\t<s>\t-0.30103",
    ]
    lines += [
        f"{math.log10(count / total):.6f}\t{word}" + ("" if word == "</s>" else "\t-0.30103")
        for word, count in unigrams.items()
    ]
    lines += ["", "\\2-grams:"]
    lines += [f"{math.log10(0.5 * count / first[a]):.6f}\t{a} {b}" for (a, b), count in bigrams.items()]
    return "\n".join([*lines, "", "\\end\\", ""])


@pytest.fixture(scope="session")
def wordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Templates that are short enough for the tiny models."""
    path = tmp_path_factory.mktemp("templates") / "short.toml"
    path.write_text(WORDINGS, encoding="utf-8")
    return path


WORDINGS = '''
[[template]]
method = "yes_no"
language = "en"
name = "both"

[[template.ask]]
text = "{sentence} Fine?"
good = ["sleep", "I"]
bad = ["dog"]

[[template.ask]]
text = "{sentence} Odd?"
good = ["dog"]
bad = ["sleep", "I"]

[[template]]
method = "yes_no"
language = "en"
name = "lines"

[[template.ask]]
text = """
{sentence}
So:
"""
good = ["the"]
bad = ["it"]

[[template]]
method = "which"
language = "en"
name = "two"

[[template.ask]]
text = "{first} {second} Best:"
first = ["A"]
second = ["The dog", "I"]

[[template]]
method = "in_template_lp"
language = "en"
name = "said"

[[template.ask]]
text = """
She slept:
{sentence}"""

[[template]]
method = "in_template_lp"
language = "en"
name = "read"

[[template.ask]]
text = """
He was reading
{sentence}"""
'''


@pytest.fixture(scope="session")
def aggregate_markov_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aggregate Markov model of three classes."""
    from acceptability.train import train
    from acceptability.train.aggregate_markov_em import AggregateMarkovRecipe

    folder = tmp_path_factory.mktemp("tiny-markov")
    (folder / "corpus.txt").write_text("\n".join(SENTENCES))
    train(AggregateMarkovRecipe(classes=3, vocabulary=0, lower=True), [folder / "corpus.txt"], folder / "model")
    return folder / "model"
