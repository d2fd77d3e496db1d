"""All targets under atheris, which looks for inputs that reach new code: ``python -m fuzz.guided SECONDS``.

The first byte of an input says which target the rest is for.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["acceptability"]):
    from acceptability.text import io as _  # noqa: F401

    from .rule import LARGEST, MEGABYTES, SECONDS, obey
    from .targets import Target, targets

RESERVE = 500
"""How many megabytes Python, our modules and atheris need themselves."""


def main(seconds: str) -> None:
    """Fuzz for a while; libFuzzer ends the process with an error where an input breaks the rule."""
    everything = targets()
    folder = Path(tempfile.mkdtemp(prefix="guided-"))
    begin = folder / "seeds"
    begin.mkdir()
    for index, target in enumerate(everything):
        for number, seed in enumerate(target.seeds):
            (begin / f"{index}-{number}").write_bytes(bytes([index]) + seed)
    words = folder / "words"
    words.write_text(_dictionary(everything), encoding="ascii")
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LARGEST}",
        f"-timeout={SECONDS:.0f}",
        f"-rss_limit_mb={MEGABYTES + RESERVE}",
        f"-artifact_prefix={folder}/",
        f"-dict={words}",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(begin)], lambda data: _one(everything, data))
    atheris.Fuzz()


def _one(everything: list[Target], data: bytes) -> None:
    if data:
        obey(everything[data[0] % len(everything)].read, data[1:])


def _dictionary(everything: list[Target]) -> str:
    words = dict.fromkeys(word for target in everything for word in target.words)
    spelled = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in words)
    return "".join(f'"{each}"\n' for each in spelled)


if __name__ == "__main__":
    main(sys.argv[1])
