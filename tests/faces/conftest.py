"""Runs each scenario through every face, with warm gates that scenarios share.

A scenario is a test with the fixture ``gate`` (a warm gate), ``observing`` (one with the
development profile) or ``start`` (gates of its own). It runs once for each face, but for
those that it names with ``@pytest.mark.not_for(REASON, FACE, ...)``.

Gates of its own cost a scenario seconds on each face. ``make test`` runs such a scenario through
one face of each product, another one for each scenario; ``make test-long`` runs the others.
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.faces.agents import PATIENCE_S
from tests.faces.face import FACES, Face, Gate, Setup
from tests.faces.known_drift import DRIFT_PATIENCE_S, drift_of
from tests.faces.policies import DEVELOPMENT, MAIN

Start = Callable[..., Gate]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes more than five seconds")
    config.addinivalue_line("markers", "xdist_group(name): scenarios of one face share a worker")
    config.addinivalue_line("markers", "not_for(reason, *faces): faces that it cannot apply to")
    config.addinivalue_line("markers", "long_for(*faces): through these it takes over five seconds")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "face" not in metafunc.fixturenames:
        return
    without: set[str] = set()
    slow: set[str] = set()
    for mark in metafunc.definition.iter_markers("not_for"):
        without |= set(mark.args[1:])
    for mark in metafunc.definition.iter_markers("long_for"):
        slow |= set(mark.args)
    chosen = []
    faces = [face for face in FACES if face.name not in without]
    if "start" in metafunc.fixturenames:
        slow |= {face.name for face in faces} - _one_for_each_product(faces, metafunc.function)
    for face in faces:
        marks = [pytest.mark.xdist_group(face.name)]
        drift = drift_of(metafunc.function.__name__.removeprefix("test_"), face.name)
        if drift is not None:
            marks.append(pytest.mark.xfail(strict=True, reason=f"drift: {drift.row}"))
        if face.name in slow:
            marks.append(pytest.mark.long)
        chosen.append(pytest.param(face, id=face.name, marks=marks))
    metafunc.parametrize("face", chosen)


def _one_for_each_product(faces: list[Face], scenario: Callable[..., None]) -> set[str]:
    """Return the faces of ``make test``: the name of the scenario picks them, so all are used."""
    products: dict[str, list[str]] = {}
    for face in faces:
        products.setdefault(face.product, []).append(face.name)
    turn = zlib.crc32(scenario.__name__.encode())
    return {names[turn % len(names)] for names in products.values()}


class WarmGates:
    """Gates that run until the session ends, one for each face and setup."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._gates: dict[tuple[str, str], Gate] = {}
        self._numbers = count(1)

    def get(self, face: Face, name: str, setup: Setup) -> Gate:
        """Return a running gate; one that a scenario has ended is started anew."""
        gate = self._gates.get((face.name, name))
        if gate is None or gate.process.process.poll() is not None:
            if gate is not None:
                gate.close()
            root = self._root / f"{face.name}-{name}-{next(self._numbers)}"
            gate = self._gates[face.name, name] = Gate(face, root, setup)
            gate.start()
            if name == "main":
                gate.call_early(asked_briefly="echo", asked_lenient="echo", extra="hang")
        return gate

    def lend(self, face: Face, name: str, setup: Setup, patience_s: float) -> Iterator[Gate]:
        """Yield a gate to one scenario, and end the HTTP sessions that it opened."""
        gate = self.get(face, name, setup)
        gate.patience_s = patience_s
        yield gate
        gate.close_sessions()

    def close(self) -> None:
        """End them all."""
        for gate in self._gates.values():
            gate.close()


@pytest.fixture(scope="session")
def warm_gates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmGates]:
    gates = WarmGates(tmp_path_factory.mktemp("faces"))
    yield gates
    gates.close()


@pytest.fixture
def patience_s(request: pytest.FixtureRequest, face: Face) -> float:
    function = request.node.function.__name__.removeprefix("test_")
    return DRIFT_PATIENCE_S if drift_of(function, face.name) else PATIENCE_S


@pytest.fixture
def gate(
    request: pytest.FixtureRequest, face: Face, warm_gates: WarmGates, patience_s: float
) -> Iterator[Gate]:
    """Lend a warm gate; a scenario with the parameter ``modern`` speaks 2026-07-28 alone.

    On stdio a connection keeps to one era, so that era has a gate of its own there.
    """
    modern = request.node.callspec.params.get("modern", False)
    name = "modern" if modern and face.agent == "stdio" else "main"
    for lent in warm_gates.lend(face, name, MAIN, patience_s):
        lent.is_modern = modern
        yield lent


@pytest.fixture
def observing(face: Face, warm_gates: WarmGates, patience_s: float) -> Iterator[Gate]:
    yield from warm_gates.lend(face, "development", DEVELOPMENT, patience_s)


@pytest.fixture
def start(face: Face, tmp_path: Path, patience_s: float) -> Iterator[Start]:
    """Start gates of the scenario's own, and end them with it."""
    started: list[Gate] = []

    def run(setup: Setup, *, at_once: bool = True) -> Gate:
        gate = Gate(face, tmp_path / f"gate-{len(started)}", setup)
        gate.patience_s = patience_s
        started.append(gate)
        return gate.start() if at_once else gate

    yield run
    for each in started:
        each.close()
