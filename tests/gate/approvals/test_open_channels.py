"""Channels made from settings, and real shims that ask by them."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_hook import KEY, FakeHook, decides
from tests.support.fake_slack import TOKEN, FakeSlack, failing, rate_limited
from tests.support.shim_peer import ShimPeer
from tests.support.waiting import wait_for
from tests.support.wraps import kind_of, text_of

from thoughtgate.channels.delivery import DeliveryChannel
from thoughtgate.config.settings import Settings, SlackSettings, WebhookSettings, WorkflowSettings
from thoughtgate.core.record_events import AGENT_AUTH_REJECTED
from thoughtgate.errors import ConfigError
from thoughtgate.gate.approvals.open_channels import Reports, open_channels

SETTINGS = Settings(
    "deny",
    approval={
        "ops": WorkflowSettings("ops", channel="slack", slack=SlackSettings("#ops", "OPS_TOKEN")),
        "hook": WorkflowSettings(
            "hook", channel="webhook", webhook=WebhookSettings("http://x", "HOOK_KEY")
        ),
        "default": WorkflowSettings("default"),
    },
)


def test_each_service_has_one_channel(tmp_path: Path) -> None:
    made = open_channels(
        SETTINGS, {"OPS_TOKEN": "t", "HOOK_KEY": "k"}, str(tmp_path), reports=Reports()
    )

    assert [channel.name for channel in made] == ["slack", "webhook"]
    assert all(isinstance(channel, DeliveryChannel) for channel in made)


def test_workflows_that_ask_here_need_none(tmp_path: Path) -> None:
    assert open_channels(Settings("deny"), {}, str(tmp_path), reports=Reports()) == []


def test_a_secret_that_is_not_set_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_channels(SETTINGS, {}, str(tmp_path), reports=Reports())


def test_a_terminal_is_brought_by_the_gates_that_own_one(tmp_path: Path) -> None:
    """Under wrap and over stdio the terminal is the agent's."""
    settings = Settings("deny", approval={"t": WorkflowSettings("t", channel="terminal")})

    assert open_channels(settings, {}, str(tmp_path), reports=Reports()) == []


def test_reports_are_fetched_once() -> None:
    reports = Reports()
    reports.refused("webhook", "unsigned")
    (record,) = reports.fetch()

    assert (record.type, record.body["agent"]) == (
        AGENT_AUTH_REJECTED,
        {"method": "webhook", "reason": "unsigned"},
    )
    assert reports.fetch() == []


# Real gates.


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as served:
        yield served


@pytest.fixture
def hook() -> Iterator[FakeHook]:
    with FakeHook() as served:
        yield served


def a_shim(folder: Path, workflow: str, **env: str) -> ShimPeer:
    config = (
        "schema: 1\ndefault: forward\nrules:\n  - {tool: delete_note, action: approve, approval: ops}\n"
        f"approval:\n  ops: {workflow}\n"
    )
    return ShimPeer(folder, config, env=env)


def on_slack(folder: Path, slack: FakeSlack, timeout: str = "60s") -> ShimPeer:
    place = f"{{channel: '#ops', token_env: OPS_TOKEN, poll: 100ms, api_url: '{slack.url}'}}"
    workflow = f"{{channel: slack, slack: {place}, approvers: [U1, U2], timeout: {timeout}}}"
    return a_shim(folder, workflow, OPS_TOKEN=TOKEN)


def call(peer: ShimPeer, ident: int = 1, note: str = "draft") -> None:
    params = {"name": "delete_note", "arguments": {"name": note, "api_key": "sk-abcdefghijklmnop"}}
    peer.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})


def test_a_call_is_approved_with_a_reaction_and_denied_with_a_reply(
    tmp_path: Path, slack: FakeSlack
) -> None:
    with on_slack(tmp_path, slack) as peer:
        call(peer)
        wait_for(lambda: slack.messages)
        slack.react("U666", "+1")
        assert "sk-abcdef" not in json.dumps(slack.newest())
        assert peer.calls_reached() == []
        slack.react("U1", "+1")
        assert text_of(peer.receive_answer(1)) == "deleted draft"
        wait_for(lambda: slack.newest().get("updated"))
        assert "Approved by <@U1>" in json.dumps(slack.newest()["blocks"])

        call(peer, 2, "budget")
        wait_for(lambda: len(slack.messages) == 2)
        slack.reply("U2", "deny not now")
        assert kind_of(peer.receive_answer(2)) == "approval_rejected"
        assert peer.calls_reached() == ["delete_note"]
    decided = [one["approval"] for one in peer.events("approval_decided")]
    assert [(one["decided_by"], one["channel"]) for one in decided] == [
        ("slack:U1", "slack"),
        ("slack:U2", "slack"),
    ]
    assert TOKEN not in (tmp_path / "state" / "audit.jsonl").read_text()


def test_slack_in_trouble_never_forwards(tmp_path: Path) -> None:
    """Five kinds of trouble at once, for each call waits until its own time is over."""
    faults = {
        "down": failing(500, b"down"),
        "slow": failing(200, {"ok": True}, slow_s=8.0),
        "limited": rate_limited(1_000_000, 1),
        "garbage": failing(200, b"<html>"),
        "deleted": failing(
            200, {"ok": False, "error": "thread_not_found"}, only="conversations.replies"
        ),
    }
    with contextlib.ExitStack() as stack:
        peers: list[ShimPeer] = []
        for name, fault in faults.items():
            slack = stack.enter_context(FakeSlack())
            slack.faults.append(fault)
            (tmp_path / name).mkdir()
            peers.append(stack.enter_context(on_slack(tmp_path / name, slack, timeout="5s")))
            call(peers[-1])
        for peer in peers:
            # Other traffic flows on meanwhile.
            assert peer.ask({"jsonrpc": "2.0", "id": 7, "method": "ping"})["result"] == {}
        for peer in peers:
            assert kind_of(peer.receive_answer(1)) == "approval_timeout"
            assert peer.calls_reached() == []


def test_a_limit_is_waited_for_and_then_the_answer_counts(tmp_path: Path, slack: FakeSlack) -> None:
    slack.faults.append(rate_limited(2, 1))
    with on_slack(tmp_path, slack) as peer:
        call(peer)
        wait_for(lambda: slack.messages)
        assert slack.count("chat.postMessage") == 3
        slack.react("U1", "+1")
        assert text_of(peer.receive_answer(1)) == "deleted draft"


def test_a_gate_that_stops_marks_its_message(tmp_path: Path, slack: FakeSlack) -> None:
    with on_slack(tmp_path, slack) as peer:
        call(peer)
        wait_for(lambda: slack.count("conversations.replies"))
        peer.finish()
    assert "Withdrawn" in json.dumps(slack.newest()["blocks"])


def test_a_shim_without_its_token_does_not_start(tmp_path: Path, slack: FakeSlack) -> None:
    place = f"{{channel: '#ops', token_env: OPS_TOKEN, api_url: '{slack.url}'}}"
    with a_shim(tmp_path, f"{{channel: slack, slack: {place}}}") as peer:
        assert peer.wait() == 1
        peer.wait_for_stderr("OPS_TOKEN")


def by_hook(folder: Path, hook: FakeHook, timeout: str = "60s") -> ShimPeer:
    workflow = f"{{channel: webhook, webhook: {{url: '{hook.url}', secret_env: HOOK_KEY}}, timeout: {timeout}}}"
    return a_shim(folder, workflow, HOOK_KEY=KEY.decode())


def test_a_webhook_approves_a_call_of_a_real_shim(tmp_path: Path, hook: FakeHook) -> None:
    hook.answer = decides("approve")
    with by_hook(tmp_path, hook) as peer:
        call(peer)
        assert text_of(peer.receive_answer(1)) == "deleted draft"
        wait_for(lambda: "approval_settled" in hook.kinds())
    (decided,) = peer.events("approval_decided")
    assert decided["approval"]["decided_by"] == "webhook:ann"
    assert set(hook.doubts) == {""}


def test_an_answer_that_is_not_signed_is_refused_and_recorded(
    tmp_path: Path, hook: FakeHook
) -> None:
    hook.answer = decides("approve", key=b"a guess")
    with by_hook(tmp_path, hook, timeout="5s") as peer:
        call(peer)
        assert kind_of(peer.receive_answer(1)) == "approval_timeout"
        assert peer.calls_reached() == []
        peer.finish()
    refused = [one["agent"] for one in peer.events("agent_auth_rejected")]
    assert refused
    assert refused[0]["method"] == "webhook"
    assert "wrong signature" in refused[0]["reason"]
