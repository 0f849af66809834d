"""Speaking to a webhook: everything signed, both ways."""

import json
from collections.abc import Iterator

import pytest
from tests.support.approvals import an_approval
from tests.support.fake_hook import KEY, Answer, FakeHook, decides

from thoughtgate.channels.delivery import DeliveryError, RequestGoneError
from thoughtgate.channels.webhook import WebhookClient, WebhookTarget
from thoughtgate.channels.webhook_signature import REPLY, sign
from thoughtgate.gate.clock import now

ASKED = an_approval(channel="webhook", workflow="hook")


@pytest.fixture
def hook() -> Iterator[FakeHook]:
    with FakeHook() as served:
        yield served


@pytest.fixture
def doubts() -> list[str]:
    return []


@pytest.fixture
def client(hook: FakeHook, doubts: list[str]) -> WebhookClient:
    return WebhookClient(WebhookTarget(hook.url, KEY), refused=doubts.append)


def test_a_question_tells_everything_and_is_signed(hook: FakeHook, client: WebhookClient) -> None:
    assert client.send_request(ASKED) == ASKED.id

    (told,) = hook.told
    assert told["type"] == "approval_requested"
    assert told["approval"]["digest"] == ASKED.digest
    assert told["approval"]["arguments"] == {"path": "/tmp/x"}
    assert hook.doubts == [""]


def test_a_decision_may_come_with_the_first_answer(hook: FakeHook, client: WebhookClient) -> None:
    hook.answer = decides("approve", reason="fine")
    client.send_request(ASKED)
    (vote,) = client.poll_votes(ASKED, ASKED.id)

    assert (vote.by, vote.approve, vote.reason) == ("webhook:ann", True, "fine")
    assert hook.kinds() == ["approval_requested"]


def test_a_decision_may_come_with_a_poll(hook: FakeHook, client: WebhookClient) -> None:
    client.send_request(ASKED)
    assert client.poll_votes(ASKED, ASKED.id) == []
    hook.answer = decides("deny")

    (vote,) = client.poll_votes(ASKED, ASKED.id)
    assert not vote.approve
    assert hook.kinds() == ["approval_requested", "approval_poll", "approval_poll"]


def test_the_outcome_is_told(hook: FakeHook, client: WebhookClient) -> None:
    client.send_outcome(ASKED._replace(status="expired"), ASKED.id)

    assert hook.told[0]["approval"]["status"] == "expired"


def test_an_unsigned_answer_is_no_answer_and_recorded(
    hook: FakeHook, client: WebhookClient, doubts: list[str]
) -> None:
    def unsigned(told: dict[str, object], nonce: str) -> Answer:
        return decides("approve")(told, nonce)._replace(headers=None)

    hook.answer = unsigned
    client.send_request(ASKED)

    assert client.poll_votes(ASKED, ASKED.id) == []
    assert "unsigned" in doubts[0]


def test_an_answer_signed_with_another_key_is_no_answer(
    hook: FakeHook, client: WebhookClient, doubts: list[str]
) -> None:
    hook.answer = decides("approve", key=b"another")

    assert client.poll_votes(ASKED, ASKED.id) == []
    assert "wrong signature" in doubts[0]


def test_a_replayed_answer_is_no_answer(
    hook: FakeHook, client: WebhookClient, doubts: list[str]
) -> None:
    """Somebody in between keeps yesterday's yes; it was signed for another request."""
    kept = decides("approve")({"approval": {"id": ASKED.id, "digest": ASKED.digest}}, "f" * 32)
    hook.answer = lambda _, __: kept

    assert client.poll_votes(ASKED, ASKED.id) == []
    assert "wrong signature" in doubts[0]


def test_our_own_question_sent_back_is_no_answer(hook: FakeHook, client: WebhookClient) -> None:
    hook.answer = lambda told, _: Answer(200, json.dumps(told).encode())

    assert client.poll_votes(ASKED, ASKED.id) == []


def test_an_answer_about_another_call_is_no_answer(
    hook: FakeHook, client: WebhookClient, doubts: list[str]
) -> None:
    hook.answer = decides("approve", digest="0" * 64)

    assert client.poll_votes(ASKED, ASKED.id) == []
    assert "for a different call" in doubts[0]


def test_an_old_answer_is_no_answer(
    hook: FakeHook, client: WebhookClient, doubts: list[str]
) -> None:
    def old(told: dict[str, object], nonce: str) -> Answer:
        body = decides("approve")(told, nonce).body
        return Answer(200, body, sign(KEY, REPLY + nonce, body, "n" * 20, now() - 1000).headers())

    hook.answer = old
    assert client.poll_votes(ASKED, ASKED.id) == []
    assert "out of date" in doubts[0]


@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b"[1]", b"{" * 1000])
def test_other_answers_mean_not_yet(hook: FakeHook, client: WebhookClient, body: bytes) -> None:
    hook.answer = lambda _, __: Answer(200, body)

    assert client.poll_votes(ASKED, ASKED.id) == []


@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_errors_are_trouble(hook: FakeHook, client: WebhookClient, status: int) -> None:
    hook.answer = lambda _, __: Answer(status)

    with pytest.raises(DeliveryError, match=str(status)):
        client.poll_votes(ASKED, ASKED.id)


def test_patience_that_is_asked_for_is_told(hook: FakeHook, client: WebhookClient) -> None:
    hook.answer = lambda _, __: Answer(429, b"", {"Retry-After": "9"})

    with pytest.raises(DeliveryError) as caught:
        client.poll_votes(ASKED, ASKED.id)
    assert caught.value.retry_after_s == 9


@pytest.mark.parametrize("status", [404, 410])
def test_a_question_that_is_not_known_there_any_more_is_gone(
    hook: FakeHook, client: WebhookClient, status: int
) -> None:
    hook.answer = lambda _, __: Answer(status)

    with pytest.raises(RequestGoneError):
        client.poll_votes(ASKED, ASKED.id)


def test_redirects_are_not_followed(hook: FakeHook, client: WebhookClient) -> None:
    with FakeHook() as other:
        hook.answer = lambda _, __: Answer(307, b"", {"Location": other.url})
        with pytest.raises(DeliveryError):
            client.send_request(ASKED)
        assert other.told == []


def test_an_endless_answer_is_trouble(hook: FakeHook, client: WebhookClient) -> None:
    hook.answer = lambda _, __: Answer(200, b"x" * 100_000)

    with pytest.raises(DeliveryError, match="too long"):
        client.poll_votes(ASKED, ASKED.id)


def test_a_hook_that_is_not_there_is_trouble(doubts: list[str]) -> None:
    client = WebhookClient(WebhookTarget("http://127.0.0.1:9/hook", KEY), refused=doubts.append)

    with pytest.raises(DeliveryError, match="cannot be reached"):
        client.send_request(ASKED)
