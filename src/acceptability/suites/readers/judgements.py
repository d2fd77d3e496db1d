"""Suites of judged sentences: labelled (CoLA, NPI paradigms), or rated (LI-Adger, Lau et al., Niu and Penn).

CoLA, the Corpus of Linguistic Acceptability, version 1.1 (Warstadt, Singh and Bowman 2019; ``read_cola``):
the public splits, the analysis set with 15 major and 63 minor grammatical features (Warstadt and
Bowman 2019), the five targeted sets of section 7.2, 200 sentences judged by five people, and FAVA,
verb alternations in frames (Kann et al. 2019). Ids are ours: the suite and the number of the row.
The targeted sets are lower-cased and tokenized. Five sentences of the analysis set have another label
than in the development sets.

Negative polarity items (Warstadt et al. 2019, five analysis methods; ``read_npi``): ``npi`` has paradigms
that cross licensor, scope and NPI; ``npi/pairs`` and ``npi/cloze`` have minimal pairs; ``npi/wilcox``
has items after Wilcox et al. (2019). The published splits hold 108,000 of the paper's 136,000
sentences. Two folders of the splits (``conditionals``, ``quantifiers``) are spelled differently in the
metadata and the pair files; ids follow the folders, the tag ``environment`` follows the metadata.

LI-Adger (``read_li_adger``) has sentences of Linguistic Inquiry and of Adger's textbook with
magnitude-estimation ratings: Vázquez Martínez (2021), after Sprouse and Almeida (2012) and
Sprouse, Schütze and Almeida (2013). Ids are the published ones,
``volume.issue.author.example.MARK.token`` or ``chN.example.MARK.token``; the label is 1 if the mark
is ``g``. Two sentences (ch6.93.*.01, ch6.93.g.09) have no rating, and two pairs have the same text
on both sides.

Lau, Clark and Lappin (2017, the SMOG project) and Lau et al. (2020, in context; ``read_lau``): ratings
are means over raters on the scale of their mode of presentation: binary (coded 1 and 4), four points, or a
slider from 1 to 100. Modes are separate suites, since their scales must not be mixed. In the 2020
suites the tag ``context`` holds the preceding text, which models read first.

Sprouse, Schütze and Almeida (2013; ``read_sprouse2013_li``, file of Tjuatja et al. 2025): pairs of
Linguistic Inquiry in three tasks. The rating is the Likert one, in z units. The tags have the others:
``likert``, ``me`` (magnitude estimation, z) and ``forced_choice``, the share of choices of the bad
sentence of the pair. Ids are the published ones; the magnitude estimates are those of ``li_adger``,
whose ids may differ in case.

Niu and Penn (2020; ``read_niu_penn2020``): the 120 permutations of "colourless green ideas sleep
furiously", judged by the authors. 28 are grammatical, 88 are not, and 4 undecided ones have no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.errors import SuiteError
from acceptability.suites import MinimalPair, add_group_tag, build_pair_suite
from acceptability.suites.catalog import CatalogEntry
from acceptability.text.io import read_dict_rows, read_lines, read_tab_rows
from acceptability.types import Contrast, Sentence, Suite, make_contrast

# FAVA's names in the data, and those of the paper.
_ALTERNATIONS = {
    "dat": "dative",
    "inch": "inchoative",
    "spray": "spray_load",
    "there": "there_insertion",
    "u_obj": "understood_object",
}

_FEATURES = {"major": 15, "minor": 63}


def read_cola(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return one of CoLA's sets, chosen by the entry's id."""
    readers = {"cola/analysis": _read_analysis, "cola/human": _read_human}
    sentences = readers.get(entry.id, _read_plain)(entry, files)
    return Suite(entry.id, tuple(sentences))


def _read_plain(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    # These files have no header, so ids are line numbers.
    ((path, content),) = files.items()
    for number, (source, label, mark, text) in read_tab_rows(content, f"{entry.folder}/{path}", width=4):
        tags = {"mark": mark.strip()} | ({"source": source} if source else {})
        tags |= {"alternation": _ALTERNATIONS[source]} if source in _ALTERNATIONS else {}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _read_analysis(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    tables = [
        list(read_tab_rows(content, f"{entry.folder}/{path}", width=4 + _FEATURES[grain]))
        for grain in _FEATURES
        for path, content in files.items()
        if grain in path
    ]
    for (number, major), (_, minor) in zip(*(table[1:] for table in tables), strict=True):
        # The two feature files are joined by line, which their repeated sentences and labels allow to check.
        if major[:4] != minor[:4]:
            raise SuiteError(f"{entry.id}, line {number}: the two feature files have different sentences")
        source, domain, label, text = major[:4]
        tags = {"source": source, "domain": domain.lower()}
        for grain, row, (_, header) in zip(_FEATURES, (major, minor), (table[0] for table in tables), strict=True):
            tags |= {f"{grain}/{name}": value for name, value in zip(header[4:], row[4:], strict=True)}
        # Line 1 is the header, so line 2 is sentence 1.
        yield Sentence(f"{entry.id}/{number - 1}", text, label=int(label), tags=tags)


def _read_human(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    rows = read_tab_rows(content, f"{entry.folder}/{path}", width=11)
    _, header = next(rows)
    for _, row in rows:
        cells = dict(zip(header, row, strict=True))
        tags = {name: cells[name] for name in header if name in ("domain", "source") or "annotator" in name}
        yield Sentence(f"{entry.id}/{cells['order']}", cells["sentence"], label=int(cells["gold"]), tags=tags)


# The keys of the metadata. They are listed because metadata are joined by hyphens, and values contain hyphens too.
_KEYS = (
    "experiment",
    "env",
    "npi",
    "crucial_item",
    "distractor",
    "licensor",
    "scope",
    "npi_present",
    "paradigm",
)

_KEY = re.compile(rf"(?:^|-)({'|'.join(_KEYS)})=")

_PAIR = re.compile(r"env=(?P<environment>\w+?)_(?P<varied>licensor=.*)")


def read_npi(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the NPI paradigms, the pairs or the Wilcox items, chosen by the entry's id."""
    if entry.id in ("npi/pairs", "npi/cloze"):
        return _read_pairs(entry, files)
    return Suite(entry.id, tuple(_read_paradigms(entry, files)))


def _read_paradigms(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    for path, content in files.items():
        split = path.removesuffix(".tsv").removeprefix("splits/")
        for number, (metadata, label, _, text) in read_tab_rows(content, f"{entry.folder}/{path}", width=4):
            tags = _parse_metadata(metadata)
            if entry.id == "npi":
                tags |= {"split": split.split("/")[1], "set": f"{tags['environment']}/{tags['paradigm']}"}
                yield Sentence(f"{split}/{number}", text, label=int(label), tags=tags)
            else:
                tags |= {"set": tags["paradigm"]}
                yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _parse_metadata(metadata: str) -> dict[str, str]:
    """Return the factors in a metadata string.

    >>> _parse_metadata("experiment=NPI-env=only-npi=any-crucial_item=no-one-licensor=1-paradigm=7")["crucial_item"]
    'no-one'
    """
    # The split alternates keys and values, after an empty string before the first key.
    parts = _KEY.split(metadata)[1:]
    tags = dict(zip(parts[::2], parts[1::2], strict=True))
    del tags["experiment"]
    return {"environment": tags.pop("env")} | tags


def _read_pairs(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    ((path, content),) = files.items()
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for number, (_, first, second, label, condition) in read_tab_rows(content, f"{entry.folder}/{path}", width=5):
        tags = _parse_condition(condition, f"{path}, line {number}") | {"item": f"{entry.id}/{number}"}
        pair = [
            # The label of a pair is 1 if its second sentence is the acceptable one.
            Sentence(f"{entry.id}/{number}/{position}", text, label=int((position == 2) == (label == "1")), tags=tags)
            for position, text in ((1, first), (2, second))
        ]
        sentences += pair
        contrasts.append(make_contrast(*sorted(pair, key=lambda sentence: sentence.label == 0)))
    return _add_paradigms(Suite(entry.id, tuple(sentences), tuple(contrasts)))


def _add_paradigms(suite: Suite) -> Suite:
    """Return the suite with the derived tag ``set``: pairs that share a sentence are of one paradigm."""
    # The file does not say which, but no text is in two paradigms of the suite npi. A paradigm is several sets here if
    # its pairs share no sentence.
    by_text: dict[str, list[str]] = {}
    for sentence in suite.sentences:
        by_text.setdefault(sentence.text, []).append(sentence.id)
    pairs = ((contrast.better, contrast.worse) for contrast in suite.contrasts)
    return add_group_tag(suite, "set", [*by_text.values(), *pairs])


def _parse_condition(text: str, where: str) -> dict[str, str]:
    match = _PAIR.fullmatch(text)
    if not match:
        raise SuiteError(f"{where}: cannot parse the condition {text!r}")
    return {"environment": match["environment"], "condition": match["varied"]}


_RATINGS = "data/human_ME_results_li-adger_sentences.csv"

_PAIRS = "data/li-adger_min_pairs.csv"

# Spreadsheet software wrote this for a missing value.
_UNRATED = "#N/A"


def read_li_adger(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences of LI-Adger and its pairs, without the discarded ones."""
    sentences = {
        row["id"]: _parse_sentence(row) for _, row in read_dict_rows(files[_RATINGS], f"{entry.folder}/{_RATINGS}")
    }
    # 28 published pairs are marked as discarded. The texts come from the sentence file: participants saw its typos,
    # which the pair file corrects in one pair.
    pairs = [row for _, row in read_dict_rows(files[_PAIRS], f"{entry.folder}/{_PAIRS}") if not row["discard"]]
    contrasts = tuple(make_contrast(sentences[row["gramm_id"]], sentences[row["ungramm_id"]]) for row in pairs)
    return _add_type_pairs(Suite(entry.id, tuple(sentences.values()), contrasts))


def _add_type_pairs(suite: Suite) -> Suite:
    """Return the suite with the derived tags ``type_pair``, its sampling unit, and ``type_group``.

    Lexicalisations of one type have ids that differ in the last part only. The unit of a contrast is the pair of the
    types of its sentences. A type may be in several pairs, and then all of its sentences are: so the unit of a sentence
    is the group of all types that pairs connect, which keeps lexicalisations and the two members of each pair together.
    Contrasts have that group as well (``type_group``): pairs that share a type share sentences.
    """
    sentences_of: dict[str, list[str]] = {}
    for sentence in suite.sentences:
        sentences_of.setdefault(_find_type(sentence.id), []).append(sentence.id)
    pairs = {(_find_type(contrast.better), _find_type(contrast.worse)) for contrast in suite.contrasts}
    linked = ([sentences_of[better][0], sentences_of[worse][0]] for better, worse in sorted(pairs))
    grouped = add_group_tag(suite, "type_group", [*sentences_of.values(), *linked])
    groups = {sentence.id: _find_type(sentence.tags["type_group"]) for sentence in grouped.sentences}
    return replace(
        grouped,
        sentences=tuple(
            replace(one, tags={**one.tags, "type_group": groups[one.id], "type_pair": groups[one.id]})
            for one in grouped.sentences
        ),
        contrasts=tuple(
            replace(one, tags={**one.tags, "type_group": groups[one.better], "type_pair": _name_type_pair(one)})
            for one in grouped.contrasts
        ),
        derived_tags=("type_group", "type_pair"),
    )


def _name_type_pair(contrast: Contrast) -> str:
    return f"{_find_type(contrast.better)} > {_find_type(contrast.worse)}"


def _find_type(sentence_id: str) -> str:
    """Return the type of a sentence of Linguistic Inquiry or Adger.

    >>> _find_type("32.1.martin.1a.g.01")
    '32.1.martin.1a.g'
    """
    return sentence_id.rpartition(".")[0]


def _parse_sentence(row: Mapping[str, str]) -> Sentence:
    kind, mark, _ = row["id"].rsplit(".", 2)
    rating = None if row["judgement"] == _UNRATED else float(row["judgement"])
    # Ratings are means of participants' z-scores. The unit keeps them from being standardised again.
    tags = {"source": row["dataset"], "mark": mark, "type": f"{kind}.{mark}", "rating_unit": "z"}
    tags |= {"typo": row["typo?"]} if row["typo?"] else {}
    return Sentence(row["id"], row["sentence"], label=int(mark == "g"), rating=rating, tags=tags)


# Only the sentences of Adger's textbook have a label; the others are originals and round-trip translations.
_LABELS = {"adger-good": 1, "adger-bad": 0}


def read_lau(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences of one of the sets of Lau et al., chosen by the entry's id."""
    if entry.id == "lau2017_smog/example":
        return Suite(entry.id, tuple(_read_example(entry, files)))
    reader = _read_context if entry.id.startswith("lau2020_context/") else _read_smog
    ((path, content),) = files.items()
    return Suite(entry.id, tuple(reader(entry, content, f"{entry.folder}/{path}")))


def _read_smog(entry: CatalogEntry, content: bytes, where: str) -> Iterator[Sentence]:
    # Tab-separated and unquoted, although the files are named .csv.
    rows = read_tab_rows(content, where, width=6)
    next(rows)
    wanted_mode = entry.id.rpartition("/")[2].upper()
    for number, (mode, round_trip, text, _, ratings, mean) in rows:
        # One file holds several modes of presentation, which are separate suites.
        if wanted_mode.startswith("MOP") and mode != wanted_mode:
            continue
        # The round-trip language "en" marks an original sentence, in the Spanish file too.
        tags = {"mode": mode, "round_trip": round_trip, "raters": str(ratings.count(",") + 1), "ratings": ratings}
        yield Sentence(
            f"{entry.id}/{number - 1}",
            text.strip(),
            label=_LABELS.get(round_trip),
            rating=float(mean),
            tags=tags | {"language": entry.language},
        )


def _read_example(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    # Two files of parallel lines; in alphabetical order the sentences come before the ratings.
    texts, ratings = (content for _, content in sorted(files.items()))
    for (number, text), (_, rating) in zip(read_lines(texts, entry.id), read_lines(ratings, entry.id), strict=True):
        yield Sentence(f"{entry.id}/{number}", text, rating=float(rating), tags={"mode": "MOP4"})


def _read_context(entry: CatalogEntry, content: bytes, where: str) -> Iterator[Sentence]:
    for _, row in read_dict_rows(content, where):
        tags = {"item": row["ID"], "round_trip": row["source-language"], "translated": row["translated"]}
        tags |= {"ratings": row["full-ratings"]}
        # The sentences of a context are separated by tabs in the file. A model reads plain text.
        tags |= {"context": " ".join(row["context"].split("\t"))} if row["context"] else {}
        yield Sentence(f"{entry.id}/{row['ID']}", row["sentence"], rating=float(row["mean-ratings"]), tags=tags)


def read_sprouse2013_li(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the Linguistic Inquiry pairs of Sprouse, Schütze and Almeida (2013)."""
    ((path, content),) = files.items()
    return _add_type_pairs(build_pair_suite(entry.id, _read_rated_pairs(content, f"{entry.folder}/{path}")))


def _read_rated_pairs(content: bytes, where: str) -> Iterator[MinimalPair]:
    for number, (_, row) in enumerate(read_dict_rows(content, where), start=1):
        shared = {"item": str(number), "forced_choice": row["Bad Sentence FC Mean"], "rating_unit": "z"}
        good, bad = (
            Sentence(
                row[f"{member} ID"],
                row[f"{member} Sentence"],
                label=int(member == "Good"),
                rating=float(row[f"{member} Sentence LS"]),
                tags=shared
                | {"likert": row[f"{member} Sentence LS"], "me": row[f"{member} Sentence ME"]}
                | {"mark": row["Bad Sentence Gold Judgment"] if member == "Bad" else "g"},
            )
            for member in ("Good", "Bad")
        )
        yield good, bad


def read_niu_penn2020(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the 120 permutations in the published order, which is that of itertools.permutations."""
    ((path, content),) = files.items()
    rows = enumerate(read_dict_rows(content, f"{entry.folder}/{path}", delimiter="\t"), start=1)
    return Suite(
        entry.id,
        tuple(
            Sentence(f"{entry.id}/{number}", row["sentence"], label=int(row["judgement"]) if row["judgement"] else None)
            for number, (_, row) in rows
        ),
    )
