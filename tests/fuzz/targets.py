"""What is fuzzed: each target takes bytes, as a user's file or a text on the command line would hold them."""

from __future__ import annotations

import atexit
import gzip
import io
import json
import lzma
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

from acceptability import registry
from acceptability.errors import AcceptabilityError
from acceptability.generate import load_paradigm_files
from acceptability.generate.generator import generate_sentences
from acceptability.measures.predictions import formula_holds, parse_formula
from acceptability.models.hf.loading import Checkpoint, find_checkpoint
from acceptability.models.ngram.arpa import Arpa
from acceptability.models.prompted import read_templates
from acceptability.models.sentence.word_vectors import read_vectors
from acceptability.papers import read_study as read_study
from acceptability.people.responses import read_responses
from acceptability.report.export import can_draw
from acceptability.report.page import ReportHeading, build_browser, render_report
from acceptability.report.report_data import ReportData, attach_suites, load_report_data
from acceptability.specs import parse_model_spec
from acceptability.specs import parse_signature as parse_signature
from acceptability.store.scorefile import read_scores
from acceptability.suites import load_suite
from acceptability.suites.brackets import read_marks
from acceptability.suites.notation import write_notation
from acceptability.suites.tables import write_jsonl
from acceptability.text.io import format_csv
from acceptability.train.corpus import open_corpus
from acceptability.types import Contrast, Sentence, Suite
from suites.sheets import write_ods, write_xlsx

_MEMORY = Path("/dev/shm")
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
"""Files that are written a hundred thousand times lie in memory, where the system has a place for that."""
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
_MADE = 200
_KNOWN = Suite("known", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.", regions={"verb": (5, 11)})))


@dataclass(frozen=True)
class Target:
    """Something that reads what users write.

    Args:
        seeds: Inputs that are in order, or nearly so, to begin from.
        words: What such inputs are made of.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[str, ...]


def written(name: str, data: bytes) -> Path:
    """Return a file with this content."""
    path = _FOLDER / name
    path.write_bytes(data)
    return path


def text_of(data: bytes) -> str:
    """Return a text; what is not UTF-8 becomes halves of surrogate pairs, as on a command line."""
    return data.decode("utf-8", "surrogateescape")


def _suite(ending: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        suite = load_suite(str(written(f"suite.{ending}", data)))
        again = _FOLDER / "again.jsonl"
        write_jsonl(suite, again)
        assert load_suite(str(again)).hash == suite.hash, "a suite is not read back as it was written"
        try:
            write_notation(suite)
        except AcceptabilityError:
            return suite.signature
        return suite.signature

    return read


def _measure(data: bytes) -> object:
    return repr(registry.make("measure", text_of(data)))


def _reduction(data: bytes) -> object:
    return repr(registry.make("reduction", text_of(data)))


def _located(data: bytes) -> object:
    return parse_model_spec(text_of(data))


def _marks(data: bytes) -> object:
    return read_marks(text_of(data))


def _formula(data: bytes) -> object:
    formula = parse_formula(text_of(data))
    assert parse_formula(str(formula)) == formula, "a formula is not read back as it was written"
    return formula_holds(formula, lambda region: 1.0)


def _paradigm(data: bytes) -> object:
    return list(islice(generate_sentences(load_paradigm_files(str(written("mine.toml", data))), seed=0), _MADE))


def _scores(ending: str) -> Callable[[bytes], object]:
    return lambda data: read_scores(written(f"scores.{ending}", data), _KNOWN)


def _responses(data: bytes) -> object:
    return read_responses(written("answers.csv", data), kind="likert")


def _corpus(ending: str) -> Callable[[bytes], object]:
    return lambda data: list(open_corpus([written(f"corpus.{ending}", data)]).sentences())


def _report(data: bytes) -> object:
    material = load_report_data([str(written("rows.json", data))])
    return render_report(ReportHeading("fuzzed"), material, [], None), format_csv(material.results)


def _behind_a_report(data: bytes) -> object:
    folder = _FOLDER / "run"
    folder.mkdir(exist_ok=True)
    results = [{**RESULT, "suite": PAIRS.name, "signature": f"PBC()|suite:{PAIRS.signature}|n:2", "model": name}
               for name in ("a", "b")]  # fmt: skip
    told = {"id": "run", "command": "evaluate", "arguments": "", "signatures": []}
    for name, content in (("run", told), ("results", results)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "units.json").write_bytes(data)
    material = attach_suites(load_report_data([str(folder)]), [PAIRS])
    return render_report(ReportHeading("fuzzed"), material, [], build_browser(material)), _panels(material)


def _panels(material: ReportData) -> int:
    """Return how many rows all figures have, where there is what draws them."""
    if not can_draw():
        return 0
    from acceptability.report.figures import FIGURE_KINDS

    return sum(len(panel.rows) for figure in FIGURE_KINDS for panel in figure.make_panels(material))


def _signature(data: bytes) -> object:
    return parse_signature(text_of(data))


SYNTAXGYM = {
    "meta": {"name": "agree", "metric": "sum"},
    "predictions": [{"type": "formula", "formula": "(2;%match%) < (2;%mismatch%)"}],
    "items": [
        {
            "item_number": 1,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [
                        {"region_number": 1, "content": "The cats"},
                        {"region_number": 2, "content": verb},
                        {"region_number": 3, "content": ""},
                    ],
                }
                for name, verb in (("match", "sleep"), ("mismatch", "sleeps"))
            ],
        }
    ],
}
PARADIGM = """name = "toy"
tags = {language = "en"}
[splits]
train = 3
[[word]]
category = "noun"
lemma = "zyx"
plural = "zyxes"
kind = "adult"
[[paradigm]]
name = "attraction"
count = 5
sentence = "the {subject number=$subject} {near} {verb number=$verb form=present} {often}."
acceptable = ["subject=sg verb=sg", "subject=pl verb=pl"]
pairs = ["verb"]
tags = {noun = "{subject number=sg}"}
[paradigm.slots]
subject = "noun kind=adult relational=no"
other = "noun kind=adult gender=@subject.gender"
verb = "verb frame=intransitive subject=@subject.kind"
often = ["today", "again"]
[paradigm.factors]
subject = ["sg", "pl"]
verb = ["sg", "pl"]
[paradigm.parts.near]
"subject=sg" = "near the {other number=sg}"
"subject!=sg" = ""
"""
CROSSED = """name = "rows"
[[paradigm]]
name = "crossed"
cross = ["pair", "often"]
sentence = "{who} {what number=$n form=past} {often}."
acceptable = ["n=sg what.frame=intransitive", "n=sg"]
repeats = true
[paradigm.slots]
who = "text"
what = "verb frame=intransitive|transitive"
often = ["today", "again"]
[paradigm.factors]
n = ["sg", "pl"]
[paradigm.rows]
pair = [["who", "what"], ["Kim", "sleep"], ["Lee", "laugh"]]
"""
STUDY = 'title = "t"\nsuites = ["starter"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy"]\nseed = 0\n'
TEMPLATES = """[[template]]
method = "yes_no"
language = "en"
name = "plain"
[[template.ask]]
text = "Is this good? {sentence}"
good = ["Yes"]
bad = ["No"]
"""
ARPA = (
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<s>\t-0.3\n-1\t</s>\n-0.5\tcats\t-0.2\n-2\t<unk>\n\n"
    "\\2-grams:\n-0.3\t<s> cats\n-0.2\tcats </s>\n\n\\end\\\n"
)
RESULT = {
    "measure": "PairAccuracy(ties=0.0)",
    "model": "uniform",
    "reduction": "lp",
    "suite": "starter",
    "group": None,
    "value": 0.5,
    "low": 0.4,
    "high": 0.6,
    "n": 10,
    "reason": None,
    "notes": "",
    "signature": "PBC()|suite:a|n:1",
}
PAIRS = Suite(
    "pairs",
    tuple(Sentence(name, f"Cats {name}.", label, rating=float(label)) for name, label in (("g", 1), ("b", 0))),
    (Contrast("g", "b"),),
)
UNITS = [
    {"suite": "pairs", "measure": measure, "model": model, "reduction": "lp()", "unit": unit, **numbers, "tag/set": "1"}
    for model in ("a", "b")
    for measure, unit, numbers in (
        ("PairAccuracy(ties=0.0)", "g > b", {"gap": 0.5, "correct": 1.0}),
        ("ADC(delta=0.5)", "g > b", {"gap": 0.5, "human_gap": 1.0, "met": 1.0}),
        ("Repulsion()", "g > b", {"better": 1.0, "worse": 2.0, "repulsion": 0.3}),
        ("PBC()", "g", {"score": -9.0, "label": 1.0}),
    )
]
_TABLE = (
    *("text", "sentence", "good", "bad", "label", "rating", "id", "tags", "regions", "better_than"),
    *("1", "0", "Cats sleep.", "Cats sleeps.", "nan", "inf", "1e400", "1_0", ";"),
)
_JSON = ("{", "}", "[", "]", ":", ",", '"', "null", "true", "NaN", "Infinity", "1e999", "\\ud800", "\\u0000")
_SPELLED = (
    *("(", ")", "=", ",", "'", '"', "{", "}", "[", "]", ":", "*", "**", "-", "1", "0.5", "1e999", "1j", "None"),
    *("True", "delta", "ties", "threshold", "unigrams", "lambda", "f'{x}'", "b'x'", "...", "_", ".", "\\"),
)


def _zipped(data: str, pack: Callable[[bytes], bytes]) -> bytes:
    return pack(data.encode())


def _sheet(write: Callable[..., Path]) -> tuple[bytes, ...]:
    # Not at hand, there is nothing to read; the extra brings it.
    if find_spec("python_calamine") is None:
        return ()
    rows = [["item", "text", "label"], [1, "Cats sleep.", 1], [1, "Cats sleeps.", 0]]
    return (write(_FOLDER / "seed", {"A": rows, "B": rows}).read_bytes(),)


def _archived() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/x.csv", "good,bad\nA b.,B a.\n")
        archive.writestr("a/y.csv", "good;bad\nA b.;B a.\n")
    return packed.getvalue()


def _parquet() -> tuple[bytes, ...]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return ()
    out = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["Cats sleep.", "Cats sleeps."], "label": [1, 0]}), out)
    return (out.getvalue(),)


def _arrays() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, words=np.array(["cats", "sleep"]), vectors=np.ones((2, 3), np.float32))
    return out.getvalue()


TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 0, "content": "<unk>", "special": True}],
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "cats": 1, "sleep": 2}, "unk_token": "<unk>"},
}
CONFIG = {"model_type": "gpt2", "vocab_size": 3, "n_positions": 8, "n_embd": 4, "n_layer": 1, "n_head": 1}


def _checkpoint(name: str, read: Callable[[Checkpoint], object]) -> Callable[[bytes], object]:
    """Read a folder of transformers in which one file holds the bytes, and all others are in order."""

    def reading(data: bytes) -> object:
        folder = _FOLDER / "checkpoint"
        folder.mkdir(exist_ok=True)
        whole = {"config.json": CONFIG, "tokenizer.json": TOKENIZER, "model.safetensors": {}}
        for file, content in whole.items():
            (folder / file).write_bytes(data if file == name else json.dumps(content).encode())
        return read(find_checkpoint("causal", str(folder)))

    return reading


def _checkpoint_targets() -> list[Target]:
    try:
        import transformers  # noqa: F401
    except ImportError:
        return []
    config, tokenizer = json.dumps(CONFIG).encode(), json.dumps(TOKENIZER).encode()
    return [
        Target(
            "configurations of models",
            _checkpoint("config.json", lambda files: files.config),
            (config,),
            (*_JSON, *CONFIG, "auto_map", "dtype", "bert", "llama", "1", "-1", "a.b"),
        ),
        Target(
            "tokenizers of models",
            _checkpoint(
                "tokenizer.json",
                lambda files: files.token_names and files.tokenize(["Cats sleep."], add_special_tokens=True),
            ),
            (tokenizer,),
            (*_JSON, *TOKENIZER, "BPE", "Unigram", "WordPiece", "vocab", "merges", "type", "99999999"),
        ),
    ]


def _zstandard_target() -> list[Target]:
    try:
        import zstandard
    except ImportError:
        return []
    return [Target("zst-packed text", _corpus("zst"), (zstandard.compress(b"Cats sleep.\n" * 9),), ("\0",))]


def _lines_of(rows: list[dict[str, object]]) -> tuple[bytes, ...]:
    """Return rows as a run is saved, one a line, and as other programs write them."""
    by_line = ",\n".join(map(json.dumps, rows))
    return f"[{by_line}]\n".encode(), json.dumps(rows).encode()


def targets() -> list[Target]:
    """Return everything that is fuzzed as bytes."""
    found = [
        Target(
            "CSV",
            _suite("csv"),
            (b"text,label\nCats sleep.,1\nCats sleeps.,0\n", b'good,bad,x\n"Cats, sleep.",Cats sleeps.,1\n'),
            (*_TABLE, ",", "\n", "\r\n", "\r", '"'),
        ),
        Target(
            "TSV",
            _suite("tsv"),
            (b"good\tbad\nCats sleep.\tCats sleeps.\n", b"Cats sleep.\tCats sleeps.\n"),
            (*_TABLE, "\t", "\n", "\r\n", '"'),
        ),
        Target(
            "JSONL",
            _suite("jsonl"),
            (
                b'{"id":"a","text":"Cats sleep.","label":1,"rating":1.5,"regions":{"v":[5,10]},"tags":{"x":"y"},'
                b'"better_than":["b"]}\n{"id":"b","text":"Cats sleeps.","label":0}\n',
            ),
            (*_TABLE, *_JSON, "\n"),
        ),
        Target("Parquet", _suite("parquet"), _parquet(), ("PAR1", "text", "\0")),
        Target("spreadsheets", _suite("xlsx"), _sheet(write_xlsx), ("PK", "<c r=", "<v>", "\0")),
        Target("open spreadsheets", _suite("ods"), _sheet(write_ods), ("PK", "<table:table-row", "\0")),
        Target("archives", _suite("zip"), (_archived(),), ("PK", "text", "\0")),
        Target("arrays of JSON", _suite("json"), (b'[{"text": "A b.", "label": "1"}]',), _JSON),
        Target("labelled lines", _suite("txt"), (b"True\tA b.\nFalse\tB a.\n",), ("True", "False", "\t", "\n")),
        Target(
            "linguists' notation",
            _suite("txt"),
            (
                b"(12) a. *The cats [sleeps/*sleep] (at) {night, noon}.\nHe [has/*have] left.\n",
                b"Betsy buttered (*at) the toast.\n?*Who *(to) did he talk? (island)\n",
            ),
            (
                *("(", ")", "[", "]", "{", "}", "/", "*", "?", "#", "\\", "(12)", "a.", "Cats sleep", ".", "\n", "-"),
                *("‘a’", "3SG", "dog-PL", " "),
            ),
        ),
        Target(
            "SyntaxGym's JSON",
            _suite("json"),
            (json.dumps(SYNTAXGYM).encode(),),
            (*_JSON, "meta", "items", "predictions", "formula", "(1;%match%)", "regions", "content"),
        ),
        Target(
            "measures",
            _measure,
            (b"ADC(delta=0.5)", b"PairAccuracy", b"MCC(threshold=-2.31)", b"SetAccuracy()"),
            (*_SPELLED, *registry.names("measure")),
        ),
        Target(
            "reductions",
            _reduction,
            (b"exp(slor(unigrams='file.tsv'))", b"lp", b"morcela(beta=1, gamma=0)", b"word_lp_mean_q1"),
            (*_SPELLED, *registry.names("reduction")),
        ),
        Target(
            "names of models",
            _located,
            (b"masked:bert (mine)/v1(variant='word_l2r')", b"causal:a/b@c(bos=None)", b"uniform"),
            (*_SPELLED, *registry.names("model"), "/", "@"),
        ),
        Target("marks", _marks, (b"?=1,#=drop",), ("?", "#", "*", "=", ",", "0", "1", "drop")),
        Target(
            "formulas",
            _formula,
            (b"[(6;%plaus%) + (7;%plaus%)] < (6;%implaus%) & [(*;%a%)=0.5]", b"(1;%a%) - -1 > 0 | [(1;%b%)=1]"),
            ("(", ")", "[", "]", ";", "%a%", "1", "*", "+", "-", "<", ">", "=", "&", "|", "0.5", "(1;%a%)", " "),
        ),
        Target(
            "paradigms",
            _paradigm,
            (PARADIGM.encode(), CROSSED.encode()),
            (
                *(
                    "name",
                    "paradigm",
                    "sentence",
                    "slots",
                    "factors",
                    "count",
                    "=",
                    '"',
                    "[",
                    "]",
                    "{",
                    "}",
                    "[[word]]",
                ),
                *("\n", "noun", "verb", "kind=adult", "@subject.gender", "$verb", "|", "!=", "number=sg", "form=past"),
                *("1", "-1", "99999999999999", "splits", "cross", "rows", "tags", "true", "'''", '"""', "\u2028"),
            ),
        ),
        Target(
            "scores in CSV",
            _scores("csv"),
            (b"sentence_id,score,model\na,-1.5,m\nb#verb,-2,m\n", b"sentence_id,score\na,\nb,1\n"),
            ("sentence_id", "score", "model", "a", "b", "b#verb", ",", "\n", "-1", "nan", "inf", '"', "1_0"),
        ),
        Target(
            "scores in JSONL",
            _scores("jsonl"),
            (b'{"sentence_id":"a","score":-1.5}\n{"sentence_id":"b","score":null}\n',),
            (*_JSON, "sentence_id", "score", "a", "b", "\n"),
        ),
        Target(
            "people's answers",
            _responses,
            (b"participant,sentence,response,catch\np,Cats sleep.,5,\nq,Cats sleep.,NA,\np,Dogs.,1,1\nq,Dogs.,1,1\n",),
            ("participant", "sentence", "response", "catch", "id", "label", ",", "\n", "1", "7", "NA", "yes", '"'),
        ),
        Target("studies", lambda data: read_study(written("study.toml", data)), (STUDY.encode(),), ("=", "[", '"')),
        Target(
            "templates of questions",
            lambda data: read_templates(written("asked.toml", data)),
            (TEMPLATES.encode(),),
            ("=", "[", '"', "{sentence}", "{", "}", "method"),
        ),
        Target(
            "ARPA tables", lambda data: Arpa(written("a.arpa", data)).vocabulary_size, (ARPA.encode(),), ("\t", "-1")
        ),
        Target(
            "word vectors",
            lambda data: read_vectors(written("vectors.txt", data)),
            (b"2 3\ncats 1 2 3\nsleep 0.5 -1 2\n", b"cats 1 2\n"),
            ("cats", " ", "\n", "1", "nan", "1e400", "-"),
        ),
        Target(
            "arrays of word vectors",
            lambda data: read_vectors(written("vectors.npz", data)),
            (_arrays(),),
            ("PK", "words.npy", "\x93NUMPY", "descr", "shape", "\0"),
        ),
        *_checkpoint_targets(),
        Target("text to train on", _corpus("txt"), (b"Cats sleep.\n\xef\xbb\xbfDogs bark.\r\n",), ("\n", "\r", "\0")),
        Target("gzipped text", _corpus("gz"), (_zipped("Cats sleep.\n" * 9, gzip.compress),), ("\0",)),
        *_zstandard_target(),
        Target("xz-packed text", _corpus("xz"), (_zipped("Cats sleep.\n" * 9, lzma.compress),), ("\0",)),
        Target("rows of a report", _report, (json.dumps([RESULT, RESULT]).encode(),), (*_JSON, *RESULT)),
        Target("rows behind a report", _behind_a_report, _lines_of(UNITS), (*_JSON, *UNITS[1], "better", "worse")),
        Target("signatures", _signature, (b"PBC()|suite:mine|n:12",), ("|", ":", "%7C", "\\", "%")),
    ]
    return [each for each in found if each.seeds]
