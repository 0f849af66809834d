"""A fresh machine for each test."""

from pathlib import Path

import pytest
from tests.support.wraps import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
