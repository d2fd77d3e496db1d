from __future__ import annotations

import re
from pathlib import Path

import pytest

from report.blimp_like import write

pytest.importorskip("altair", reason="figures need the extra plots")


@pytest.mark.slow
def test_five_models_on_67_paradigms_stay_under_15_megabytes(tmp_path: Path) -> None:
    path = write(tmp_path / "report.html")
    assert path.stat().st_size < 15_000_000
    text = path.read_text(encoding="utf-8")
    assert "2,000 of 67,000 pairs are here: first those on which models differ (2,000)" in text
    assert len(re.findall(r'"texts":\[', text)) == 2000
    assert "paradigm_number_66" in text
    assert '"shaded":["model-0","model-1","model-2","model-3","model-4"]' in text
