"""The table of known differences names only what exists."""

import importlib
from pathlib import Path

from tests.faces.face import NAMES
from tests.faces.known_drift import KNOWN_DRIFT, PARTS


def test_rows_name_scenarios_and_faces_that_exist() -> None:
    modules = [
        importlib.import_module(f"tests.faces.{path.stem}")
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
    ]
    scenarios = {
        name.removeprefix("test_") for module in modules for name in vars(module)
        if name.startswith("test_")
    }  # fmt: skip
    for drift in KNOWN_DRIFT:
        assert drift.cases, f"{drift.row}: no scenario shows it"
        assert set(drift.cases) <= scenarios | set(PARTS), drift.row
        for faces in drift.cases.values():
            assert set(faces) <= set(NAMES), drift.row


def test_a_pair_is_explained_by_one_row() -> None:
    pairs = [
        (scenario, face)
        for drift in KNOWN_DRIFT
        for scenario, faces in drift.cases.items()
        for face in faces
    ]
    assert len(pairs) == len(set(pairs))
