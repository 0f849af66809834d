"""Parameters of a costly test: ``make test`` runs the first, ``make test-long`` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(values: Iterable[Any]) -> list[Any]:
    """Mark all values but the first as long."""
    first, *others = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*first), *(pytest.param(*one, marks=pytest.mark.long) for one in others)]
