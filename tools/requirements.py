"""The list of requirement ids, and the report that joins each id to its tests.

The ids stand in ``tests/requirements/*.txt``, one a line: the id, the issue that
delivers it, and what it asks for, separated by ``|``. Tests name the ids they prove
with the ``requirement`` marker. Run as a program, this runs the marked tests and
prints every id with its tests and their result; an id without a test, or with a
failing one, makes the exit code 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
LISTS: Final = ROOT / "tests" / "requirements"
RUN_S: Final = 7200
PARALLEL: Final = ("-n", "auto", "--dist", "worksteal")
"""Several processes, each taking over tests of another when its own are done."""

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
MISSING: Final = "no test"


class Requirement(NamedTuple):
    """One promised behaviour."""

    id: str
    issue: int
    meaning: str
    source: str
    """The name of the list it stands in."""


class Proof(NamedTuple):
    """One test that claims a requirement, and how it went."""

    test: str
    outcome: str


def parse_list(text: str, source: str) -> list[Requirement]:
    """Read one list. A wrong line is an error that names it.

    Raises:
        ValueError: a line is not ``ID | issue | meaning``.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match [part.strip() for part in line.split("|", 2)]:
            case [ident, issue, meaning] if ident and meaning and issue.isdigit():
                found.append(Requirement(ident, int(issue), meaning, source))
            case _:
                wanted = "'ID | issue | meaning'"
                raise ValueError(f"{source}:{number}: expected {wanted}, got {line!r}")
    return found


def load_requirements(folder: Path = LISTS) -> dict[str, Requirement]:
    """Read all lists.

    Raises:
        ValueError: a line is wrong, or an id stands twice.
    """
    known: dict[str, Requirement] = {}
    for path in sorted(folder.glob("*.txt")):
        for requirement in parse_list(path.read_text("utf-8"), path.stem):
            if requirement.id in known:
                raise ValueError(f"{requirement.id} stands in {path.name} and elsewhere")
            known[requirement.id] = requirement
    return known


def verdict_on(proofs: list[Proof]) -> str:
    """Return the one word for an id's tests: skipped ones prove nothing, failed ones refute."""
    outcomes = {proof.outcome for proof in proofs}
    for word in (FAILED, PASSED, SKIPPED):
        if word in outcomes:
            return word
    return MISSING


def render_report(
    wanted: list[Requirement], proofs: dict[str, list[Proof]], *, show_tests: bool = True
) -> str:
    """Return the report as text: every id, then what is missing, by issue."""
    lines: list[str] = []
    missing: dict[int, list[str]] = {}
    counts = dict.fromkeys((PASSED, FAILED, SKIPPED, MISSING), 0)
    for requirement in wanted:
        own = proofs.get(requirement.id, [])
        word = verdict_on(own)
        counts[word] += 1
        lines.append(f"{requirement.id:<14} {word:<8} {requirement.meaning}")
        if show_tests:
            lines += [f"{'':<14} {proof.outcome:<8} {proof.test}" for proof in own]
        if word != PASSED:
            missing.setdefault(requirement.issue, []).append(f"{requirement.id} ({word})")
    lines.append("")
    lines += [f"issue {issue}: {', '.join(ids)}" for issue, ids in sorted(missing.items())]
    lines.append(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    return "\n".join(lines)


def read_proofs(text: str) -> dict[str, list[Proof]]:
    """Read what ``pytest --requirements-report`` wrote."""
    data: dict[str, list[list[str]]] = json.loads(text)
    return {ident: [Proof(*proof) for proof in found] for ident, found in data.items()}


def run_marked_tests(report: Path) -> int:
    """Run every test that claims a requirement and return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "requirement", *PARALLEL]
    command += ["--requirements-report", str(report)]
    # Each test has a limit of its own; this one is for a run that does not end for all that.
    done = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False, timeout=RUN_S)
    return done.returncode


def main() -> int:
    """Run the tests, or read an earlier report, and print the table."""
    parser = argparse.ArgumentParser(description="Each requirement id with its tests and result.")
    parser.add_argument("--issue", type=int, help="only the ids of this issue")
    parser.add_argument("--report", type=Path, help="read this report instead of running tests")
    parser.add_argument("--brief", action="store_true", help="leave the names of tests out")
    options = parser.parse_args()
    wanted = [
        requirement
        for requirement in load_requirements().values()
        if options.issue in (None, requirement.issue)
    ]
    with tempfile.TemporaryDirectory() as folder:
        report: Path = options.report or Path(folder) / "report.json"
        if options.report is None:
            run_marked_tests(report)
        proofs = read_proofs(report.read_text("utf-8"))
    print(render_report(wanted, proofs, show_tests=not options.brief))
    return int(any(verdict_on(proofs.get(one.id, [])) in {MISSING, FAILED} for one in wanted))


if __name__ == "__main__":
    sys.exit(main())
