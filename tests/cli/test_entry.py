"""Where the command starts: the shim's short way, and everything else's."""

import os
import subprocess
import sys

import pytest
from tests.support.commands import ROOT, thoughtgate
from tests.support.waiting import PATIENCE_S

from thoughtgate import __version__
from thoughtgate.cli.entry import SHIM_HELP, main
from thoughtgate.shim.command import _FLAGS


def test_the_shim_goes_its_own_short_way(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["thoughtgate", "shim", "--help"])

    assert main() == 0
    out, err = capfd.readouterr()
    assert (out, err) == ("", SHIM_HELP)


def test_the_help_names_every_option_of_the_shim() -> None:
    for flag in _FLAGS:
        assert flag in SHIM_HELP, flag


def test_the_shims_way_does_not_load_the_other_commands() -> None:
    code = (
        "import sys; sys.argv = ['thoughtgate', 'shim', '--help']\n"
        "from thoughtgate.cli.entry import main; main()\n"
        "print([name for name in ('typer', 'click', 'rich') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=PATIENCE_S,
    )

    assert done.stdout.strip() == "[]"


def test_every_other_command_goes_to_the_command_line_proper() -> None:
    done = subprocess.run(
        thoughtgate("--version"), capture_output=True, check=True, text=True, timeout=PATIENCE_S
    )

    assert __version__ in done.stdout
