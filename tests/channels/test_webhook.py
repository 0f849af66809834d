"""Speaking to a webhook: everything signed, both ways."""

import json
from collections.abc import Iterator

import pytest
from tests.support.approvals import an_approval
from tests.support.fake_hook import KEY, Answer, FakeHook, decides

from thoughtgate.channels.delivery import Gone, Trouble
from thoughtgate.channels.webhook import WebhookErrand, WebhookPlace
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
def errand(hook: FakeHook, doubts: list[str]) -> WebhookErrand:
    return WebhookErrand(WebhookPlace(hook.url, KEY), refused=doubts.append)


def test_a_question_tells_everything_and_is_signed(hook: FakeHook, errand: WebhookErrand) -> None:
    assert errand.ask(ASKED) == ASKED.id

    (told,) = hook.told
    assert told["type"] == "approval_requested"
    assert told["approval"]["digest"] == ASKED.digest
    assert told["approval"]["arguments"] == {"path": "/tmp/x"}
    assert hook.doubts == [""]


def test_a_decision_may_come_with_the_first_answer(hook: FakeHook, errand: WebhookErrand) -> None:
    hook.answer = decides("approve", reason="fine")
    errand.ask(ASKED)
    (vote,) = errand.look(ASKED, ASKED.id)

    assert (vote.by, vote.approve, vote.reason) == ("webhook:ann", True, "fine")
    assert hook.kinds() == ["approval_requested"]


def test_a_decision_may_come_with_a_poll(hook: FakeHook, errand: WebhookErrand) -> None:
    errand.ask(ASKED)
    assert errand.look(ASKED, ASKED.id) == []
    hook.answer = decides("deny")

    (vote,) = errand.look(ASKED, ASKED.id)
    assert not vote.approve
    assert hook.kinds() == ["approval_requested", "approval_poll", "approval_poll"]


def test_the_outcome_is_told(hook: FakeHook, errand: WebhookErrand) -> None:
    errand.settle(ASKED._replace(status="expired"), ASKED.id)

    assert hook.told[0]["approval"]["status"] == "expired"


def test_an_unsigned_answer_is_no_answer_and_recorded(
    hook: FakeHook, errand: WebhookErrand, doubts: list[str]
) -> None:
    def unsigned(told: dict[str, object], nonce: str) -> Answer:
        return decides("approve")(told, nonce)._replace(headers=None)

    hook.answer = unsigned
    errand.ask(ASKED)

    assert errand.look(ASKED, ASKED.id) == []
    assert "unsigned" in doubts[0]


def test_an_answer_signed_with_another_key_is_no_answer(
    hook: FakeHook, errand: WebhookErrand, doubts: list[str]
) -> None:
    hook.answer = decides("approve", key=b"another")

    assert errand.look(ASKED, ASKED.id) == []
    assert "wrong signature" in doubts[0]


def test_a_replayed_answer_is_no_answer(
    hook: FakeHook, errand: WebhookErrand, doubts: list[str]
) -> None:
    """Somebody in between keeps yesterday's yes; it was signed for another request."""
    kept = decides("approve")({"approval": {"id": ASKED.id, "digest": ASKED.digest}}, "f" * 32)
    hook.answer = lambda _, __: kept

    assert errand.look(ASKED, ASKED.id) == []
    assert "wrong signature" in doubts[0]


def test_our_own_question_sent_back_is_no_answer(hook: FakeHook, errand: WebhookErrand) -> None:
    hook.answer = lambda told, _: Answer(200, json.dumps(told).encode())

    assert errand.look(ASKED, ASKED.id) == []


def test_an_answer_about_another_call_is_no_answer(
    hook: FakeHook, errand: WebhookErrand, doubts: list[str]
) -> None:
    hook.answer = decides("approve", digest="0" * 64)

    assert errand.look(ASKED, ASKED.id) == []
    assert "about another call" in doubts[0]


def test_an_old_answer_is_no_answer(
    hook: FakeHook, errand: WebhookErrand, doubts: list[str]
) -> None:
    def old(told: dict[str, object], nonce: str) -> Answer:
        body = decides("approve")(told, nonce).body
        return Answer(200, body, sign(KEY, REPLY + nonce, body, "n" * 20, now() - 1000).headers())

    hook.answer = old
    assert errand.look(ASKED, ASKED.id) == []
    assert "out of date" in doubts[0]


@pytest.mark.parametrize("body", [b"", b"ok", b"{}", b"[1]", b"{" * 1000])
def test_other_answers_mean_not_yet(hook: FakeHook, errand: WebhookErrand, body: bytes) -> None:
    hook.answer = lambda _, __: Answer(200, body)

    assert errand.look(ASKED, ASKED.id) == []


@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_errors_are_trouble(hook: FakeHook, errand: WebhookErrand, status: int) -> None:
    hook.answer = lambda _, __: Answer(status)

    with pytest.raises(Trouble, match=str(status)):
        errand.look(ASKED, ASKED.id)


def test_patience_that_is_asked_for_is_told(hook: FakeHook, errand: WebhookErrand) -> None:
    hook.answer = lambda _, __: Answer(429, b"", {"Retry-After": "9"})

    with pytest.raises(Trouble) as caught:
        errand.look(ASKED, ASKED.id)
    assert caught.value.retry_after_s == 9


@pytest.mark.parametrize("status", [404, 410])
def test_a_question_that_is_not_known_there_any_more_is_gone(
    hook: FakeHook, errand: WebhookErrand, status: int
) -> None:
    hook.answer = lambda _, __: Answer(status)

    with pytest.raises(Gone):
        errand.look(ASKED, ASKED.id)


def test_redirects_are_not_followed(hook: FakeHook, errand: WebhookErrand) -> None:
    with FakeHook() as other:
        hook.answer = lambda _, __: Answer(307, b"", {"Location": other.url})
        with pytest.raises(Trouble):
            errand.ask(ASKED)
        assert other.told == []


def test_an_endless_answer_is_trouble(hook: FakeHook, errand: WebhookErrand) -> None:
    hook.answer = lambda _, __: Answer(200, b"x" * 100_000)

    with pytest.raises(Trouble, match="too long"):
        errand.look(ASKED, ASKED.id)


def test_a_hook_that_is_not_there_is_trouble(doubts: list[str]) -> None:
    errand = WebhookErrand(WebhookPlace("http://127.0.0.1:9/hook", KEY), refused=doubts.append)

    with pytest.raises(Trouble, match="cannot be reached"):
        errand.ask(ASKED)
