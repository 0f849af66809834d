"""``thoughtgate policy accept``: a person accepts a changed config by command."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.audit_cli import Done, command
from tests.support.policy_changes import policy_questions

from thoughtgate.core.approval import WITHDRAWN, Approval
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.policy_files.accepted_policy import keep_accepted
from thoughtgate.gate.reload import watch_config

DENY = "schema: 1\ndefault: deny\n"
FORWARD = "schema: 1\ndefault: forward\n"


class Desk:
    """A config file, its state directory and the command."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "thoughtgate.yaml"
        self.state = folder / "state"
        self._capsys = capsys

    def use(self, text: str) -> None:
        """Start a gate with the config, as an agent would."""
        self.path.write_text(text, "utf-8")
        loaded = load_configuration(str(self.path), {}, str(self.path.parent))
        keep_accepted(loaded, {}, str(self.state), lambda _: None)

    def accept(self, *flags: str) -> Done:
        return command(self._capsys, "policy", "accept", str(self.path), *flags)

    def accepted_text(self) -> str:
        with closing(open_store(str(self.state))) as store:
            found = store.policies().accepted(str(self.path))
        return found.file.texts[str(self.path)] if found is not None else ""


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path / "state"))
    return Desk(tmp_path, capsys)


def test_the_difference_is_shown_and_accepted(desk: Desk) -> None:
    desk.use(DENY)
    desk.path.write_text(FORWARD, "utf-8")

    done = desk.accept("--yes")

    assert done.code == 0
    assert "LOOSENS" in done.out
    assert "default: deny -> forward" in done.out
    assert "+default: forward" in done.out
    assert desk.accepted_text() == FORWARD
    assert "Nothing to accept" in desk.accept().out


def test_without_a_terminal_nothing_is_accepted_unless_told(desk: Desk) -> None:
    desk.use(DENY)
    desk.path.write_text(FORWARD, "utf-8")

    done = desk.accept()

    assert done.code == 2
    assert "--yes" in done.err
    assert desk.accepted_text() == DENY


def test_the_report_is_json_on_request(desk: Desk) -> None:
    desk.use(DENY)
    desk.path.write_text(FORWARD, "utf-8")

    told = json.loads(desk.accept("--yes", "--json").out)

    assert told["accepted"] is True
    assert told["path"] == str(desk.path)
    assert "default: deny -> forward" in told["difference"]["loosens"]


def test_the_first_config_is_accepted_without_a_difference(desk: Desk) -> None:
    desk.path.write_text(DENY, "utf-8")

    done = desk.accept("--yes")

    assert done.out == f"Accepted {desk.path}.\n"
    assert desk.accepted_text() == DENY


def test_an_accepted_config_that_cannot_be_loaded_any_more_is_replaced(desk: Desk) -> None:
    desk.path.write_text(f"{DENY}servers: {{a: {{command: '${{RUN}}'}}}}\n", "utf-8")
    loaded = load_configuration(str(desk.path), {"RUN": "x"}, str(desk.path.parent))
    keep_accepted(loaded, {}, str(desk.state), lambda _: None)
    desk.path.write_text(FORWARD, "utf-8")

    done = desk.accept("--yes")

    assert "CANNOT BE TOLD" in done.out
    assert desk.accepted_text() == FORWARD


def test_without_a_config_file_there_is_nothing_to_accept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(desk.path.parent)
    monkeypatch.setenv("HOME", str(desk.path.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.path.parent))

    done = command(capsys, "policy", "accept", "--yes")

    assert done.code == 2
    assert "no config file" in done.err


@pytest.mark.promise("no-silent-loosening")
def test_an_agents_shell_cannot_accept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.use(DENY)
    desk.path.write_text(FORWARD, "utf-8")
    monkeypatch.setenv("THOUGHTGATE_ACTIVE", "1")

    done = desk.accept("--yes")

    assert done.code == 2
    assert desk.accepted_text() == DENY


def test_a_running_gate_takes_what_was_accepted_and_its_question_is_closed(desk: Desk) -> None:
    desk.path.write_text(DENY, "utf-8")
    loaded = load_configuration(str(desk.path), {}, str(desk.path.parent))
    desk.state.mkdir()
    governor = open_governor(loaded, {}, str(desk.state))
    watch = watch_config(governor, loaded, {}, lambda _: None)
    governor.start(now())
    desk.path.write_text(f"{FORWARD}# changed\n", "utf-8")
    watch.look(now())
    (question,) = policy_questions(desk.state)

    desk.accept("--yes")
    watch.look(now())

    assert governor.policy.default == "forward"
    with closing(open_store(str(desk.state))) as store:
        closed = store.get(question.id)
    assert isinstance(closed, Approval)
    assert closed.status == WITHDRAWN
    assert policy_questions(desk.state) == []
    governor.finish("SUCCEEDED", now())


def test_the_built_in_policy_is_accepted_in_place_of_a_file_that_is_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = desk.path.parent / "config" / "thoughtgate"
    home.mkdir(parents=True)
    monkeypatch.chdir(desk.path.parent)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.parent))
    (home / "thoughtgate.yaml").write_text(DENY, "utf-8")
    command(capsys, "policy", "accept", "--yes")
    (home / "thoughtgate.yaml").unlink()

    done = command(capsys, "policy", "accept", "--yes")

    assert "built-in policy" in done.out
    with closing(open_store(str(desk.state))) as store:
        assert store.policies().accepted(str(home / "thoughtgate.yaml")) is None


@pytest.mark.promise("no-silent-loosening", "approver-sees-invisible-characters")
@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_a_rule_that_moved_into_a_comment_is_shown(desk: Desk, end: str) -> None:
    cedar = desk.path.with_name("p.cedar")
    rule = "forbid(principal, action, resource);\n"
    text = f"permit(principal, action, resource);\n// never:\n{rule}"
    cedar.write_text(text, "utf-8")
    desk.use("schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n")
    cedar.write_text(text.replace("never:\n", f"never:{end}"), "utf-8")

    done = desk.accept("--yes")

    assert f"-{rule}" in done.out
    assert f"+// never:[U+{ord(end):04X}]{rule}" in done.out
