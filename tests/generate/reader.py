"""A parser of the sentences of the polarity paradigms, from their text alone, which reports their faults.

It knows nothing of the generator: it has its own words (``facts``), its own inflection, and a small grammar of clauses.
It checks agreement of subject and verb, of determiner and noun, the form after an auxiliary, a and an, and whether one
does such a thing to such a thing.
"""

from __future__ import annotations

import re

from generate import facts

SINGULAR = {"a", "an", "every", "each", "this", "that"}
PLURAL = {
    "these",
    "those",
    "all",
    "many",
    "several",
    "a lot of",
    "plenty of",
    "a few",
    "more than three",
    "at least five",
}
EITHER = {"the", "any", "no", "some"}
LICENSED = {"only", "even"}
_ADVERBS = """ever not often also sometimes frequently regularly usually always occasionally rarely seldom hardly
    scarcely barely really clearly certainly openly repeatedly already finally secretly recently previously"""
ADVERBS = frozenset(_ADVERBS.split())
AUXILIARIES = {
    "has": ("sg", "en"), "have": ("pl", "en"), "had": ("", "en"), "is": ("sg", "ing"), "are": ("pl", "ing"),
    "was": ("sg", "ing"), "were": ("pl", "ing"), "will": ("", "base"), "would": ("", "base"), "could": ("", "base"),
    "might": ("", "base"), "should": ("", "base"),
}  # fmt: skip
FRAMES = ("according to", "in the view of", "as we were told by", "as we heard from")
LINKS = {"if", "because", "although", "since"}
PRONOUNS = {"he": "sg", "she": "sg", "they": "pl"}


class Fault(Exception):
    """What is wrong with a sentence."""


def _plural(noun: str) -> str:
    if noun.endswith("-in-law"):
        return _plural(noun.removesuffix("-in-law")) + "-in-law"
    head, space, last = noun.rpartition(" ")
    if last in facts.IRREGULAR_PLURALS:
        return head + space + facts.IRREGULAR_PLURALS[last]
    if last.endswith(("man", "woman")):
        return head + space + last[:-2] + "en"
    if re.search(r"(s|x|z|ch|sh)$", last):
        return noun + "es"
    return noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"


def _nouns() -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for kind, words in facts.NOUNS.items():
        for word in words.split():
            noun = word if word in ("self-portrait", "T-shirt", "yo-yo") else word.replace("-", " ")
            if noun in facts.NO_SINGULAR:
                found.setdefault(noun.lower(), set()).add((kind, "pl"))
                continue
            found.setdefault(noun.lower(), set()).add((kind, "sg"))
            if noun not in facts.MASS.split():
                found.setdefault(_plural(noun).lower(), set()).add((kind, "pl"))
    return found


def _forms(verb: str) -> dict[str, set[str]]:
    """Return the forms of a verb, each with what it can be."""
    irregular = {row.split()[0]: row.split()[1:] for row in re.split(r"[;\n]", facts.IRREGULAR_VERBS) if row.strip()}
    stem = verb + verb[-1] if verb in facts.DOUBLED.split() else verb
    past = verb + "d" if verb.endswith("e") else verb[:-1] + "ied" if re.search(r"[^aeiou]y$", verb) else stem + "ed"
    past, participle = irregular.get(verb, (past, past))
    third = (
        verb[:-1] + "ies"
        if re.search(r"[^aeiou]y$", verb)
        else verb + ("es" if re.search(r"(s|x|z|ch|sh|o)$", verb) else "s")
    )
    ing = (
        verb[:-2] + "ying" if verb.endswith("ie") else verb[:-1] + "ing" if re.search(r"[^e]e$", verb) else stem + "ing"
    )
    found: dict[str, set[str]] = {}
    for form, name in ((verb, "base"), (third, "third"), (past, "past"), (participle, "en"), (ing, "ing")):
        found.setdefault(form, set()).add(name)
    return found


def _verbs() -> dict[str, list[tuple[str, str, set[str]]]]:
    """Return, for each first word, the verb, what follows it, and what the form can be."""
    names = {word for words in facts.VERBS.values() for word in words.split()}
    names |= set(facts.SAYING.split()) | set(facts.ASKING.split())
    found: dict[str, list[tuple[str, str, set[str]]]] = {}
    for name in sorted(names):
        verb, _, after = name.partition("-")
        for form, kinds in _forms(verb).items():
            found.setdefault(form, []).append((name, after, kinds))
    return found


NOUNS = _nouns()
VERBS = _verbs()
TAKES = {
    name: {kind for kind, words in facts.VERBS.items() if name in words.split()}
    for name in {word for words in facts.VERBS.values() for word in words.split()}
}
CLAUSES = {(word, "that") for word in facts.SAYING.split()} | {(word, "whether") for word in facts.ASKING.split()}
MORE = set(facts.MORE_THAN_ER.split())
PLAIN = set(facts.ADJECTIVES.split())


def _superlative(adjective: str) -> str:
    if adjective in ("good", "bad"):
        return {"good": "best", "bad": "worst"}[adjective]
    if adjective.endswith("e"):
        return adjective + "st"
    if re.search(r"[^aeiou]y$", adjective) and adjective != "shy":
        return adjective[:-1] + "iest"
    return adjective + (adjective[-1] if adjective in ("big", "sad", "thin", "hot") else "") + "est"


ADJECTIVES = PLAIN | {_superlative(word) for word in PLAIN - MORE}


class Reader:
    """Reads one sentence from left to right."""

    def __init__(self, text: str) -> None:
        if not re.fullmatch(r"[A-Z][A-Za-zé',\- ]*[.?]", text) or "  " in text or " ," in text:
            raise Fault("capital, marks or spaces are not in order")
        self.is_question = text.endswith("?")
        self.tokens = re.findall(r"[\w'-]+|,", text[:-1].lower())
        self.position = 0
        for first, second in zip(self.tokens, self.tokens[1:], strict=False):
            if first == second:
                raise Fault(f"{first!r} comes twice")

    def sentence(self) -> None:
        if self.is_question:
            self.question()
        elif self.tokens[0] in LINKS:
            self.position = 1
            self.clause()
            self.take(",")
            self.clause()
        else:
            self.frame()
            self.clause()
        if self.position < len(self.tokens):
            raise Fault(f"cannot read {' '.join(self.tokens[self.position :])!r}")

    def frame(self) -> None:
        for frame in FRAMES:
            if self.tokens[: len(frame.split())] == frame.split():
                self.position = len(frame.split())
                self.phrase()
                self.take(",")

    def question(self) -> None:
        auxiliary = self.next()
        if auxiliary not in AUXILIARIES:
            raise Fault(f"{auxiliary!r} does not begin a question")
        self.predicate(self.phrase(), auxiliary)

    def clause(self, gap: set[str] | None = None) -> None:
        self.predicate(self.phrase(), None, gap)

    def predicate(self, subject: tuple[set[str], str], auxiliary: str | None, gap: set[str] | None = None) -> None:
        kinds, number = subject
        if "person" not in kinds:
            raise Fault("the subject is no person")
        self.adverbs()
        if auxiliary is None and self.peek() in AUXILIARIES:
            auxiliary = self.next()
        self.adverbs()
        self.complement(self.verb(auxiliary, number), gap)

    def verb(self, auxiliary: str | None, number: str) -> str:
        token = self.next()
        wanted = {"past", "third" if number == "sg" else "base"}
        if auxiliary is not None:
            agreeing, form = AUXILIARIES[auxiliary]
            wanted = {form}
            if agreeing not in ("", number):
                raise Fault(f"{auxiliary!r} does not agree with its subject")
        known = VERBS.get(token)
        if not known:
            raise Fault(f"{token!r} is no verb")
        fitting = [(name, after) for name, after, kinds in known if kinds & wanted]
        if not fitting:
            raise Fault(f"{token!r} is not in the form that it must have: {wanted}")
        names = {after: name for name, after in fitting}
        if self.peek() in names:
            return names[self.next()]
        if "" not in names:
            raise Fault(f"{token!r} lacks what must follow it")
        return names[""]

    def complement(self, name: str, gap: set[str] | None) -> None:
        if (name, self.peek()) in CLAUSES:
            self.position += 1
            self.clause()
        elif name not in TAKES:
            raise Fault(f"{name!r} lacks its clause")
        else:
            self.object(name, gap)

    def object(self, name: str, gap: set[str] | None) -> None:
        kinds = gap if gap is not None else self.phrase()[0]
        if not kinds & TAKES[name]:
            raise Fault(f"nobody can {name} what is {'/'.join(sorted(kinds))}")
        if gap is None and self.peek() == "that":
            self.position += 1
            self.clause(gap=kinds)

    def phrase(self) -> tuple[set[str], str]:
        if self.peek() in PRONOUNS:
            return {"person"}, PRONOUNS[self.next()]
        if self.peek() in LICENSED:
            self.position += 1
        determiner = self.determiner()
        following = self.peek()
        self.adjective()
        kinds, number = self.noun(determiner)
        if determiner in ("a", "an"):
            self.check_article(determiner, following)
        if self.peek() == "who":
            if "person" not in kinds:
                raise Fault("who refers to a thing")
            self.position += 1
            self.predicate(({"person"}, number), None)
        return kinds, number

    def determiner(self) -> str:
        for length in (3, 2, 1):
            words = " ".join(self.tokens[self.position : self.position + length])
            if words in SINGULAR | PLURAL | EITHER:
                self.position += length
                return words
        return ""

    def adjective(self) -> None:
        """Read an adjective, if a noun follows it: a patient can be patient."""
        token = self.peek()
        if token == "most" and self.tokens[self.position + 1] in MORE:
            self.position += 2
        elif token in ADJECTIVES and self.is_before_noun():
            self.position += 1

    def is_before_noun(self) -> bool:
        own, following = self.noun_at(self.position), self.noun_at(self.position + 1)
        after = self.tokens[self.position + 1 + len(following.split()) :][:1]
        return bool(following) and (not own or (" " not in own and after == ["that"]))

    def noun_at(self, index: int) -> str:
        """Return the longest noun that begins at an index; nothing if none does."""
        words = (" ".join(self.tokens[index : index + length]) for length in (3, 2, 1))
        return next((word for word in words if word in NOUNS), "")

    def noun(self, determiner: str) -> tuple[set[str], str]:
        word = self.noun_at(self.position)
        if not word:
            raise Fault(f"{self.peek()!r} is no noun")
        self.position += len(word.split())
        return self.agreeing(word, determiner)

    def agreeing(self, word: str, determiner: str) -> tuple[set[str], str]:
        allowed = {"sg"} if determiner in SINGULAR else {"sg", "pl"} if determiner in EITHER else {"pl"}
        found = [(kind, number) for kind, number in NOUNS[word] if number in allowed]
        if not found:
            raise Fault(f"{determiner!r} does not go with {word!r}")
        numbers = {number for _, number in found}
        # A noun with one form for both takes whichever number the verb has: only objects are such nouns here.
        return {kind for kind, _ in found}, numbers.pop()

    def check_article(self, article: str, word: str) -> None:
        is_vowel = word[0] in "aeiou"
        wanted = "an" if (is_vowel and word not in facts.A_BY_SOUND) or word in facts.AN_BY_SOUND else "a"
        if article != wanted:
            raise Fault(f"{article} {word}")

    def adverbs(self) -> None:
        while self.peek() in ADVERBS:
            self.position += 1

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1] if self.position <= len(self.tokens) else ""

    def take(self, token: str) -> None:
        if self.next() != token:
            raise Fault(f"{token!r} is missing")


def fault(text: str) -> str | None:
    """Return the fault of a sentence, or None."""
    try:
        Reader(text).sentence()
    except Fault as error:
        return str(error)
    return None


def find_free_choice(text: str) -> str:
    """Return why any can be a free-choice item in a sentence where nothing licenses it, or nothing."""
    tokens = Reader(text).tokens
    if found := set(tokens) & {"will", "would", "could", "might", "should"}:
        return f"the modal {found.pop()!r}"
    before = tokens[: tokens.index("any")]
    if found := _verbs_in(before[-2:]) & set(facts.FREE_CHOICE.split()):
        return f"any after {found.pop()!r}"
    return next((f"{token!r} may be in the present" for token in _finite_verbs(tokens) if _may_be_present(token)), "")


def find_verbs_after_ever(text: str) -> set[str]:
    """Return the verbs that follow ever."""
    tokens = Reader(text).tokens
    after = tokens[tokens.index("ever") + 1 :]
    # The longer one if there are two: wrote about, and not wrote.
    return {name for name in _verbs_in(after[:2]) if name.endswith("-" + "".join(after[1:2]))} or _verbs_in(after[:1])


def _verbs_in(tokens: list[str]) -> set[str]:
    """Return the verbs that one or two words end in: a verb, or a verb and what belongs to it."""
    last = {name for token in tokens[-1:] for name, after, _ in VERBS.get(token, []) if not after}
    return last | {name for name, after, _ in VERBS.get("".join(tokens[:1]), []) if tokens[1:] == [after]}


def _finite_verbs(tokens: list[str]) -> list[str]:
    """Return the verbs right after a plural noun, and who or an adverb if they follow it."""
    found = []
    for position, token in enumerate(tokens):
        before = [word for word in tokens[:position] if word not in ADVERBS | {"who"}][-1:]
        plural = any(number == "pl" for word in before for _, number in NOUNS.get(word, ()))
        if token in VERBS and (plural or before == ["they"]):
            found.append(token)
    return found


def _may_be_present(token: str) -> bool:
    return any("base" in kinds for _, _, kinds in VERBS[token])
