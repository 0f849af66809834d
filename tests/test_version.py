"""The version is written once, and the root package passes it on."""

import re

import thoughtgate
from thoughtgate.version import __version__


def test_the_version_has_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:[a-z]+\d+)?", __version__)


def test_the_root_package_has_the_same_version() -> None:
    assert thoughtgate.__version__ == __version__
