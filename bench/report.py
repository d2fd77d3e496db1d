"""Size of a report of five models on 67,000 simulated pairs, and the time to write it and to open it in Chromium.

Needs the extras plots and dev, and chromium on the path: ``python -m bench.report``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write the report, open it three times, and print the sizes and times."""
    sys.path.insert(0, str(ROOT / "tests"))
    from acceptability.report.page import ReportHeading, write_report
    from report.blimp_like import material, suite
    from report.chromium import chromium, opened

    with tempfile.TemporaryDirectory() as folder:
        os.environ["ACCEPTABILITY_HOME"] = folder
        report_data = material(suite())
        start = time.perf_counter()
        path = write_report(Path(folder) / "report.html", ReportHeading("Five models"), report_data)
        seconds = time.perf_counter() - start
        print(f"size: {path.stat().st_size / 1e6:.1f} MB; written in {seconds:.1f} s")
        with chromium() as browser:
            for turn in range(3):
                start = time.perf_counter()
                with opened(browser, path) as page:
                    page.wait_for_selector("#pairs li")
                    page.wait_for_selector(".chart svg, .chart canvas")
                    first_drawn = time.perf_counter() - start
                    page.wait_for_selector("html[data-drawn=all]", state="attached")
                    all_drawn = time.perf_counter() - start
                    print(f"opening {turn + 1}: first figure and pairs {first_drawn:.2f} s, all {all_drawn:.2f} s")


if __name__ == "__main__":
    main()
