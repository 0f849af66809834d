"""The command line as a whole: help, versions, mistakes, and what goes where."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.waiting import within
from typer.main import get_command

from thoughtgate import __version__
from thoughtgate.cli import app as app_module
from thoughtgate.cli.app import COMMANDS, Command, run
from thoughtgate.cli.options import command_app
from thoughtgate.errors import ConfigError, PeerGone, Problem


def thoughtgate(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thoughtgate", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def test_help_lists_every_command_on_stdout() -> None:
    result = thoughtgate("--help")
    assert result.returncode == 0
    assert result.stderr == ""
    assert all(command.name in result.stdout for command in COMMANDS)


def test_the_version_is_told() -> None:
    assert thoughtgate("--version").stdout == f"thoughtgate {__version__}\n"


@pytest.mark.requirement("FR29")
@pytest.mark.parametrize(
    "args",
    [(), ("nonsense",), ("--nonsense",), ("validate-config", "--nonsense"), ("policy", "explain")],
)
def test_a_usage_error_exits_2_and_writes_nothing_to_stdout(args: tuple[str, ...]) -> None:
    result = thoughtgate(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr


@pytest.mark.parametrize("name", [command.name for command in COMMANDS if command.module])
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    result = thoughtgate(name, "--help")
    assert result.returncode == 0
    assert "Usage: thoughtgate" in result.stdout


def _helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        yield context.command_path, context.get_help()
        for key, inner in getattr(command, "commands", {}).items():
            yield from _helps(inner, key, context)


@pytest.mark.parametrize("one", [one for one in COMMANDS if one.module], ids=lambda one: one.name)
def test_every_help_has_examples_answers_to_h_and_shows_no_markup(one: Command) -> None:
    module = importlib.import_module(f"thoughtgate.cli.{one.module}")
    for name, text in _helps(get_command(module.app), one.name):
        assert "\n  Examples:\n    thoughtgate " in text, name
        assert "-h, --help" in text, name
        assert "\\b" not in text, name
        assert "``" not in text, name


def test_a_mistyped_command_is_told_the_nearest_one() -> None:
    done = thoughtgate("statsu")

    assert done.returncode == 2
    assert "Did you mean 'status'?" in done.stderr


def test_a_command_is_loaded_only_when_it_runs() -> None:
    program = "import sys; from thoughtgate.cli.app import run; run(['--version']); sys.exit('typer' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], check=False, timeout=30, capture_output=True
        ).returncode
        == 0
    )


def with_command(monkeypatch: pytest.MonkeyPatch, raised: BaseException | None = None) -> None:
    """Put a command called ``sample`` into the table, which raises what it is told."""
    app = command_app()

    @app.command()
    def sample(*, stdio: bool = False) -> None:
        """Sample command."""
        if raised is not None:
            raise raised

    monkeypatch.setattr(app_module, "COMMANDS", (Command("sample", "sample", "x"),))
    monkeypatch.setattr("importlib.import_module", lambda _: SimpleNamespace(app=app))


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (None, 0, ""),
        (
            ConfigError([Problem("a", "one"), Problem("b", "two")]),
            1,
            "Error: a: one\nError: b: two\n",
        ),
        (PeerGone("gone"), 2, "Error: gone\n"),
        (RuntimeError("bug"), 2, "Traceback"),
        (SystemExit(7), 7, ""),
        (SystemExit("text"), 2, ""),
    ],
)
def test_what_ends_a_command_becomes_an_exit_code_and_words_on_stderr(
    raised: BaseException | None,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_command(monkeypatch, raised)
    assert run(["sample"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err


def test_an_interrupt_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        app_module, "_dispatch", lambda _: (_ for _ in ()).throw(KeyboardInterrupt())
    )
    assert run(["sample"]) == 130


@pytest.mark.parametrize(
    ("args", "on_stdout"),
    [(["--help"], True), (["--stdio", "--help"], False), (["--stdio", "--bad"], False)],
)
def test_where_stdout_carries_mcp_help_and_usage_errors_go_to_stderr(
    args: list[str],
    on_stdout: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_command(monkeypatch)
    run(["sample", *args])
    captured = capsys.readouterr()
    assert bool(captured.out) is on_stdout
    assert bool(captured.err) is not on_stdout


def test_output_that_nobody_reads_is_no_bug() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "thoughtgate", "validate-config", "--schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.wait(timeout=30)
    complaint = within(process.stderr.read)
    process.stderr.close()
    assert b"Traceback" not in complaint


def test_help_after_the_separator_is_not_ours() -> None:
    assert not app_module._asks_help(["--stdio", "--", "server", "--help"])
    assert app_module._asks_help(["-h"])


def test_the_shim_is_run_by_the_entry_point() -> None:
    assert run(["shim", "--", "x"]) == 2


WITHOUT_JSON = {
    "wrap": "runs the agent, whose output this is",
    "shim": "stdout carries MCP",
    "proxy": "stdout carries MCP, or the record",
    "serve": "stdout carries MCP, or the record",
    "tui": "draws on the terminal",
    "audit export": "prints one of the formats of --format",
}
"""Commands that print no data of their own, with the reason."""


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    for key, one in inner.items():
        yield from _leaves(one, f"{name} {key}")
    if not inner:
        yield name, command


def test_every_command_that_prints_data_takes_json() -> None:
    without = {"shim"}  # it is no typer application
    for one in COMMANDS:
        if one.module:
            module = importlib.import_module(f"thoughtgate.cli.{one.module}")
            for name, command in _leaves(get_command(module.app), one.name):
                options = {option for each in command.params for option in each.opts}
                without |= set() if "--json" in options else {name}

    assert without == set(WITHOUT_JSON)


@pytest.mark.parametrize("name", ["status", "approvals list", "limits list", "servers list"])
def test_what_changes_by_itself_can_be_watched(name: str) -> None:
    assert "--watch" in thoughtgate(*name.split(), "--help").stdout
