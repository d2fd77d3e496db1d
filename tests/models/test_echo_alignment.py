"""Where echoed tokens stand in a text, however a server spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.models.remote.completions_client import TransientError
from acceptability.models.remote.server_capabilities import align_tokens

MARK = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        (["Cats", " sleep", " now"], "Cats sleep", [(0, 4), (4, 10)]),
        (["Cats", "sleep", "now"], "Cats sleep", [(0, 4), (5, 10)]),
        ([" Cats", " sleep"], "Cats sleep", [(0, 4), (4, 10)]),
        (["Cats", "", "sleep"], "Cats  sleep", [(0, 4), (4, 6), (6, 11)]),
        (["Cats", "."], "Cats ", [(0, 4)]),
        (["“", "a", "bytes:\\xe2\\x80", "bytes:\\x9d"], "“a”", [(0, 1), (1, 2), (2, 3), (2, 3)]),
        (["a", "bytes: \\xe2\\x80", "bytes:\\x9d", "!"], "a ”", [(0, 1), (1, 3), (2, 3)]),
        (["a", "<0xC3>", "<0xAF>", "b"], "aïb", [(0, 1), (1, 2), (1, 2), (2, 3)]),
        (["<0xC3>"], "<0xC3>", [(0, 6)]),
        ([MARK, MARK, MARK, "x"], "你x", [(0, 1), (0, 1), (0, 1), (1, 2)]),
        (["", "", "你", "x"], "你x", [(0, 1), (0, 1), (0, 1), (1, 2)]),
        (["", "", "x"], "你x", [(0, 1), (0, 1), (1, 2)]),
        ([" " + MARK, MARK, "."], " “.", [(0, 2), (1, 2), (2, 3)]),
        ([MARK, "x"], f"{MARK}x", [(0, 1), (1, 2)]),
        (["a", MARK, MARK, "z"], "aï", [(0, 1), (1, 2), (1, 2)]),
    ],
)
def test_tokens_are_aligned(tokens: list[str], text: str, expected: list[tuple[int, int]]) -> None:
    assert align_tokens(tokens, text) == expected


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Cats", " slept"], "Cats sleep"),
        (["Cats"], "Cats sleep"),
        (["Cats", " sleep", " now", " and"], "Cats sleep"),
        (["Cats", "", "sleep"], "Catssleep"),
        ([MARK, "ats"], "Cats"),
        (["sleep", " Cats"], "Cats sleep"),
        ([], "Cats"),
    ],
)
def test_tokens_that_do_not_spell_the_text_are_refused(tokens: list[str], text: str) -> None:
    with pytest.raises(TransientError, match="do not spell the prompt"):
        align_tokens(tokens, text)


def test_offsets_decide_where_the_spelling_leaves_it_open() -> None:
    """Parts of characters that are spelled as nothing, and more added tokens than were asked for."""
    tokens = ["a", "", "", "", "", "", ""]
    assert align_tokens(tokens, "a你好", server_offsets=[0, 1, 1, 2, 2, 3, 3]) == [
        (0, 1),
        (1, 2),
        (1, 2),
        (2, 3),
        (2, 3),
    ]


@pytest.mark.parametrize("told", [[0, 3, 8], [0, 4], [4, 0, 8], [None] * 3, ["0", "4", "10"], [0, 0, 0], [7, 7, 7]])
def test_wrong_offsets_are_ignored(told: list[object]) -> None:
    assert align_tokens(["Cats", " sleep", "!"], "Cats sleep", server_offsets=told) == [(0, 4), (4, 10)]


def test_an_ambiguous_end_is_a_transient_error() -> None:
    assert align_tokens(["a", MARK, MARK], "aï", hit_length_limit=True) == [(0, 1), (1, 2)]
    with pytest.raises(TransientError, match="may or may not belong"):
        align_tokens(["a", MARK, MARK], "aï", hit_length_limit=False)


@st.composite
def chunks(draw: st.DrawFn) -> list[bytes]:
    """Draw a text cut into pieces at any byte."""
    data = draw(st.text(st.characters(codec="utf-8", exclude_characters=MARK), min_size=1, max_size=12)).encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(len(data) - 1, 1)), max_size=12)) - {len(data)})
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def true_spans(pieces: list[bytes], text: str) -> list[tuple[int, int]]:
    owner = [index for index, each in enumerate(text) for _ in each.encode()]
    ends = [sum(map(len, pieces[: count + 1])) for count in range(len(pieces))]
    return [(owner[end - len(piece)], owner[end - 1] + 1) for piece, end in zip(pieces, ends, strict=True)]


@given(chunks())
def test_escaped_bytes_are_aligned_exactly(pieces: list[bytes]) -> None:
    text = b"".join(pieces).decode()
    tokens = ["bytes:" + "".join(f"\\x{byte:02x}" for byte in piece) for piece in pieces]
    assert align_tokens([*tokens, "bytes:\\x00"], text) == true_spans(pieces, text)


@given(chunks())
def test_replacement_characters_never_lose_or_move_a_token(pieces: list[bytes]) -> None:
    """Pieces that are whole characters are placed exactly, parts of characters within their neighbourhood."""
    text = b"".join(pieces).decode()
    tokens = [piece.decode(errors="replace") for piece in pieces]
    found = align_tokens([*tokens, "\x00"], text)
    assert len(found) == len(tokens)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    for token, span in zip(tokens, found, strict=True):
        assert MARK in token or text[slice(*span)] == token
