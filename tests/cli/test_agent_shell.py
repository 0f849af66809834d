"""Commands that approve calls do not run in a shell that a governed agent started."""

from pathlib import Path

import pytest

from thoughtgate.cli.agent_shell import refuse_in_agent_shell
from thoughtgate.errors import UsageError
from thoughtgate.status.started_by_agent import MARKS


@pytest.fixture
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path))
    for mark in MARKS:
        monkeypatch.delenv(mark, raising=False)


@pytest.mark.usefixtures("_state")
def test_a_shell_of_an_agent_is_refused_with_the_command_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THOUGHTGATE_ACTIVE", "1")

    with pytest.raises(UsageError, match="run 'thoughtgate console' in another terminal"):
        refuse_in_agent_shell("console")


@pytest.mark.usefixtures("_state")
def test_any_other_shell_is_accepted() -> None:
    refuse_in_agent_shell("console")
