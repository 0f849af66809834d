"""The lists of requirement ids, the marker that joins tests to them, and the report."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import ROOT
from tools.requirements import (
    FAILED,
    MISSING,
    PASSED,
    SKIPPED,
    Proof,
    Requirement,
    load_requirements,
    parse_list,
    render_report,
    verdict_on,
)


def test_the_lists_can_be_read_and_no_id_stands_twice() -> None:
    known = load_requirements()

    assert {"EC-STDIO-001", "EC-STDIO-044", "FR30", "EVT-010", "EC-MCP-015"} <= set(known)
    assert {requirement.issue for requirement in known.values()} <= {2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("line", ["A", "A | 2", "A | two | text", " | 2 | text", "A | 2 | "])
def test_a_line_that_is_no_requirement_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="list:2"):
        parse_list(f"# comment\n{line}", "list")


def test_an_id_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A | 2 | one\nA | 2 | again\n")

    with pytest.raises(ValueError, match="A stands"):
        load_requirements(tmp_path)


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ([], MISSING),
        ([SKIPPED], SKIPPED),
        ([SKIPPED, PASSED], PASSED),
        ([PASSED, FAILED], FAILED),
    ],
)
def test_skipped_tests_prove_nothing_and_failed_ones_refute(outcomes: list[str], word: str) -> None:
    assert verdict_on([Proof("t", outcome) for outcome in outcomes]) == word


def test_the_report_groups_what_is_missing_by_issue() -> None:
    wanted = [Requirement("A", 2, "a thing", "s"), Requirement("B", 3, "another", "s")]

    report = render_report(wanted, {"A": [Proof("t.py::t", PASSED)]})

    assert "t.py::t" in report
    assert "issue 3: B (no test)" in report
    assert report.endswith("1 passed, 1 no test")


_SUITE = """
import pytest
@pytest.mark.requirement({ids})
def test_it(): pass
"""


def _run_suite(folder: Path, ids: str, *args: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(_SUITE.format(ids=ids))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    return subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_unknown_id_stops_the_run(tmp_path: Path) -> None:
    run = _run_suite(tmp_path, '"NO-SUCH-1"')

    assert run.returncode != 0
    assert "NO-SUCH-1" in run.stdout + run.stderr


def test_the_run_writes_ids_with_tests_and_outcomes(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run = _run_suite(tmp_path, '"FR1", "FR2"', "--requirements-report", str(report))

    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(report.read_text())
    assert set(found) == {"FR1", "FR2"}
    assert found["FR1"][0][1] == PASSED
