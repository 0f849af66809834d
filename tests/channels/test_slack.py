"""Speaking to Slack: one client against a server that speaks Slack's API."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.approvals import an_approval
from tests.support.fake_slack import BOT, CHANNEL, TOKEN, FakeSlack, failing, rate_limited

from thoughtgate.channels.delivery import DeliveryError, RequestGoneError
from thoughtgate.channels.slack import SlackClient, SlackTarget
from thoughtgate.core.approval import Refusal, Reviewer, may_vote

ASKED = an_approval(channel="slack", workflow="ops")


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as served:
        yield served


@pytest.fixture
def client(slack: FakeSlack) -> SlackClient:
    return SlackClient(SlackTarget("#ops", TOKEN, ("U1",), api_url=slack.url), lambda: 5.0)


def test_a_question_is_a_message_with_blocks(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)

    message = slack.newest()
    assert json.loads(handle) == [CHANNEL, message["ts"]]
    shown = json.dumps(message["blocks"])
    for part in ("delete_file", "files", "/tmp/x", "it deletes", "k3f9ab", "<@U1>", ":+1:", ":-1:"):
        assert part in shown
    assert message["channel"] == "#ops"


def test_reactions_are_votes_of_people(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)
    assert client.poll_votes(ASKED, handle) == []
    slack.react("U1", "+1::skin-tone-3")
    slack.react("U2", "-1")
    slack.react("U3", "eyes")
    slack.react(BOT, "+1")

    votes = client.poll_votes(ASKED, handle)
    assert [(vote.by, vote.approve, vote.at) for vote in votes] == [
        ("slack:U1", True, 5.0),
        ("slack:U2", False, 5.0),
    ]


def test_people_whom_slack_does_not_name_are_asked_for(
    slack: FakeSlack, client: SlackClient
) -> None:
    handle = client.send_request(ASKED)
    slack.react("U9", "+1", listed=False)

    assert [vote.by for vote in client.poll_votes(ASKED, handle)] == ["slack:U9"]
    assert slack.count("reactions.get") == 1


def test_replies_are_votes_with_reasons(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)
    slack.reply("U1", "what is this?")
    slack.reply("U1", "deny: not during the release")
    slack.reply("U2", "Approve")
    slack.reply("U3", "approve", bot_id="B2")
    slack.reply("U4", "approve", subtype="thread_broadcast")
    slack.reply(BOT, "approve")

    votes = client.poll_votes(ASKED, handle)
    assert [(vote.by, vote.approve, vote.reason) for vote in votes] == [
        ("slack:U1", False, "not during the release"),
        ("slack:U2", True, ""),
    ]


@pytest.mark.promise("bots-never-approve")
@pytest.mark.parametrize("about", [{"is_bot": True}, {"is_app_user": True}, {"deleted": True}])
def test_a_bot_has_no_vote(slack: FakeSlack, client: SlackClient, about: dict[str, Any]) -> None:
    slack.users["U7"] = about
    handle = client.send_request(ASKED)
    slack.react("U7", "+1")
    slack.react("USLACKBOT", "+1")
    slack.react("U404", "+1")
    slack.reply("U7", "approve")
    slack.reply("U8", "approve", app_id="A1")
    slack.react("U1", "+1")

    assert [vote.by for vote in client.poll_votes(ASKED, handle)] == ["slack:U1"]
    client.poll_votes(ASKED, handle)
    assert slack.count("users.info") == 3


def test_without_the_scope_only_named_people_have_a_vote(
    slack: FakeSlack, client: SlackClient
) -> None:
    handle = client.send_request(ASKED)
    slack.react("U1", "+1")
    slack.react("U2", "+1")
    slack.faults.append(
        lambda method: (
            (200, {}, {"ok": False, "error": "missing_scope"}) if method == "users.info" else None
        )
    )

    with pytest.raises(DeliveryError, match="missing_scope"):
        client.poll_votes(ASKED, handle)
    named = ASKED._replace(approvers=("U1",))
    # The approval refuses the vote of U2, who is not among the approvers.
    votes = client.poll_votes(named, handle)
    assert [vote.by for vote in votes] == ["slack:U1", "slack:U2"]
    assert isinstance(may_vote(named, Reviewer("slack:U2")), Refusal)


def test_the_message_shows_the_outcome(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)
    client.send_outcome(
        ASKED._replace(status="expired", closed_reason="nobody answered in time"), handle
    )

    shown = json.dumps(slack.newest()["blocks"])
    assert "Nobody answered in time" in shown
    assert "React with" not in shown


def test_a_deleted_message_is_gone(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)
    slack.delete()

    with pytest.raises(RequestGoneError):
        client.poll_votes(ASKED, handle)
    with pytest.raises(RequestGoneError):
        client.send_outcome(ASKED, handle)


def test_a_tombstone_is_gone(slack: FakeSlack, client: SlackClient) -> None:
    handle = client.send_request(ASKED)
    slack.newest()["subtype"] = "tombstone"

    with pytest.raises(RequestGoneError):
        client.poll_votes(ASKED, handle)


def test_a_rate_limit_says_how_long(slack: FakeSlack, client: SlackClient) -> None:
    slack.faults.append(rate_limited(1, 7))

    with pytest.raises(DeliveryError) as caught:
        client.send_request(ASKED)
    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"ok": False, "error": "internal_error"}),
        (500, {"ok": False}),
        (503, b"<html>down</html>"),
        (200, b"not json"),
        (200, []),
    ],
)
def test_errors_are_trouble_and_nothing_else(
    slack: FakeSlack, client: SlackClient, status: int, body: object
) -> None:
    slack.faults.append(failing(status, body))

    with pytest.raises(DeliveryError):
        client.send_request(ASKED)


def test_an_unknown_channel_is_trouble_until_somebody_mends_it(
    slack: FakeSlack, client: SlackClient
) -> None:
    slack.faults.append(failing(200, {"ok": False, "error": "channel_not_found"}, times=1))

    with pytest.raises(DeliveryError, match="channel_not_found"):
        client.send_request(ASKED)
    assert client.send_request(ASKED)


def test_a_server_that_is_not_there_is_trouble() -> None:
    client = SlackClient(SlackTarget("#ops", TOKEN, api_url="http://127.0.0.1:9/api/"))

    with pytest.raises(DeliveryError):
        client.send_request(ASKED)


def test_the_token_is_in_no_error(
    slack: FakeSlack, client: SlackClient, capfd: pytest.CaptureFixture[str]
) -> None:
    slack.faults.append(failing(500, b"x"))
    with pytest.raises(DeliveryError) as caught:
        client.send_request(ASKED)

    said = capfd.readouterr()
    assert TOKEN not in str(caught.value) + said.err + said.out
    assert said.out == ""


def test_a_message_of_any_length_is_taken(slack: FakeSlack, client: SlackClient) -> None:
    monster = "<&>`" * 20_000
    asked = ASKED._replace(
        tool="t" * 5000, server="s" * 5000, reason="r" * 5000, principal="p" * 5000, rule="x" * 5000,
        arguments=json.dumps({"text": monster}),
    )  # fmt: skip
    handle = client.send_request(asked)
    client.send_outcome(asked._replace(status="withdrawn", closed_reason="c" * 900), handle)

    assert slack.newest()["updated"]


def test_real_time_is_the_clock_by_default(slack: FakeSlack) -> None:
    client = SlackClient(SlackTarget("#ops", TOKEN, api_url=slack.url))
    handle = client.send_request(ASKED)
    slack.react("U1", "+1")

    (vote,) = client.poll_votes(ASKED, handle)
    assert abs(vote.at - time.time()) < 60
