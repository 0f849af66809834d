"""What every test stands on: a home of its own, examples without haste, the ``requirement`` marker.

``@pytest.mark.requirement("EC-STDIO-014")`` says that a test proves an id of the lists in
``tests/requirements``. With ``--requirements-report FILE`` the run writes, for each id, its
tests and their outcomes.
"""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tools.requirements import FAILED, LISTS, PASSED, SKIPPED, load_requirements

_GATE_VARIABLES = ("THOUGHTGATE_", "SUB_", "XDG_")
_OPTION = "--requirements-report"

# How long examples take to make says how busy the machine is, and nothing about the gate.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, metavar="FILE", help="write requirement ids with tests and outcomes")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the test proves these requirement ids")
    report = config.getoption(_OPTION)
    if report and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RequirementsReport(Path(report)), "requirements-report")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = load_requirements(LISTS)
    for item in items:
        for mark in item.iter_markers("requirement"):
            unknown = [ident for ident in mark.args if ident not in known]
            if unknown or not mark.args:
                raise pytest.UsageError(f"{item.nodeid}: unknown requirement ids {unknown}")
            # Properties travel with the report, so that a run on several processes works too.
            item.user_properties += [("requirement", ident) for ident in mark.args]


class RequirementsReport:
    """Collects outcomes and writes them when the run ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of a test's phases."""
        for name, ident in report.user_properties:
            if name != "requirement":
                continue
            tests = self._outcomes.setdefault(str(ident), {})
            earlier = tests.get(report.nodeid, PASSED)
            tests[report.nodeid] = earlier if earlier in {FAILED, SKIPPED} else report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        found = {ident: sorted(tests.items()) for ident, tests in sorted(self._outcomes.items())}
        self._path.write_text(json.dumps(found, indent=1), "utf-8")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's home, nor variables that would steer the gate."""
    home = tmp_path_factory.mktemp("home", numbered=True)
    for name in list(os.environ):
        if name.startswith(_GATE_VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
