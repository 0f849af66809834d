"""What every test stands on: a home of its own, examples without haste, the markers.

``@pytest.mark.long`` is for a test that takes more than five seconds of its own, or that needs
a compiler, a cluster or a real agent. ``make test`` leaves those out, ``make test-long`` runs
them; their time limit is ``LONG_S``.

``@pytest.mark.requirement("EC-STDIO-014")`` says that a test proves an id of the lists in
``tests/requirements``. With ``--requirements-report FILE`` the run writes, for each id, its
tests and their outcomes.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.postgres import PostgresServer
from tests.support.real_home import VIOLATIONS, guard_real_home
from tools.requirements import FAILED, LISTS, PASSED, SKIPPED, load_requirements

_GATE_VARIABLES = ("THOUGHTGATE_", "SUB_", "XDG_")
_OPTION = "--requirements-report"
_NEW = "--new-examples"
LONG_S = 600

# How long examples take to make says how busy the machine is, and nothing about the gate.
# The same examples in every run: a change that breaks a property breaks it for everybody. New
# ones are looked for with --new-examples, which `make test-long` does.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_NEW, action="store_true", help="look for new examples of properties")
    parser.addoption(_OPTION, metavar="FILE", help="write requirement ids with tests and outcomes")


def pytest_configure(config: pytest.Config) -> None:
    guard_real_home()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts background jobs with SIGINT ignored, and every process that a test starts
        # would inherit that: tests that interrupt one would wait for ever.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "requirement(*ids): the test proves these requirement ids")
    config.addinivalue_line(
        "markers", "promise(*ids): the test holds these promises of the threat model"
    )
    config.addinivalue_line("markers", "long: left to `make test-long`")
    if config.getoption(_NEW):
        settings.load_profile("new")
    report = config.getoption(_OPTION)
    if report and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RequirementsReport(Path(report)), "requirements-report")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = load_requirements(LISTS)
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))
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
    # Gates that an agent starts ask the password database, and an organisation's policy applies
    # to every gate on a machine.
    monkeypatch.setattr(
        "thoughtgate.gate.policy_files.agent_started.account_home", lambda: str(home)
    )
    monkeypatch.setattr("thoughtgate.gate.policy_files.sources.SYSTEM_DIRECTORY", str(home / "etc"))


@pytest.fixture(autouse=True)
def _real_home_is_untouched() -> Iterator[None]:
    """Fail a test that reaches for the account's own state, also if the code caught the refusal."""
    VIOLATIONS.clear()
    yield
    assert VIOLATIONS == []


def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than there are cores: many tests wait for processes of their own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) + 1


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a server that the tests of this process share; none may stop it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()
