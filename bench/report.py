"""Size of a report of five models on 67,000 simulated pairs, and the time to write it and to open it in Chromium.

The time is that of `acceptability report` after its imports: a saved run is read, and its report written, twice. CPU
seconds are printed too, which other processes change less. The second time, the script of the figures is there already.

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
    from acceptability.report.report_data import attach_suites, load_report_data
    from report.blimp_like import material, suite
    from report.chromium import chromium, opened

    with tempfile.TemporaryDirectory() as folder:
        os.environ["ACCEPTABILITY_HOME"] = folder
        whole = suite()
        material(whole)
        for turn in range(2):
            begin, used = time.perf_counter(), time.process_time()
            report_data = attach_suites(load_report_data(["latest"]), [whole])
            read = time.process_time() - used
            path = write_report(Path(folder) / "report.html", ReportHeading("Five models"), report_data)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - used
            size = path.stat().st_size / 1e6
            print(f"{turn + 1}: {size:.1f} MB in {seconds:.1f} s; CPU {cpu:.1f} s, {read:.1f} of them for reading")
            del report_data
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
