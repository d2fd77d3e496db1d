from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acceptability.specs import build_signature, fingerprint, parse_signature

KEYS = st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(lambda key: key != "measure")


@given(st.text(), st.dictionaries(KEYS, st.text()))
def test_a_signature_parses_back(measure: str, fields: dict[str, str]) -> None:
    assert parse_signature(build_signature(measure, fields)) == {"measure": measure, **fields}


@given(st.lists(st.binary(), max_size=4), st.lists(st.binary(), max_size=4))
def test_different_parts_have_different_fingerprints(first: list[bytes], second: list[bytes]) -> None:
    assert (fingerprint(first, digits=64) == fingerprint(second, digits=64)) == (first == second)
