"""What is said about a held call: what it is and where to answer, and nothing secret."""

from tests.support.approvals import an_approval

from thoughtgate.channels.answer_places import AnswerPlaces, subject
from thoughtgate.core.elicitation import HoldNotice


def test_a_notice_names_the_tool_the_server_and_the_console() -> None:
    told = AnswerPlaces("http://127.0.0.1:4000").notice(an_approval())

    assert told.waits.startswith("delete_file on files waits for a person's approval.")
    assert "http://127.0.0.1:4000/approvals/k3f9ab" in told.waits
    assert "thoughtgate approvals watch" in told.waits
    assert told.page == "http://127.0.0.1:4000/approvals/k3f9ab"
    assert "/tmp/x" not in told.waits, "arguments stay out"


def test_without_a_console_the_command_is_named() -> None:
    told = AnswerPlaces().notice(an_approval())

    assert told.waits.endswith("Answer in another terminal with: thoughtgate approvals watch")
    assert not told.page


def test_another_channel_is_named() -> None:
    assert AnswerPlaces().where(an_approval(channel="slack")).startswith("Asked on slack. ")


def test_the_agent_need_not_be_told() -> None:
    assert AnswerPlaces("http://x", tells_agent=False).notice(an_approval()) == HoldNotice()


def test_names_are_short_and_every_character_can_be_seen() -> None:
    said = subject(an_approval(tool="\x1b]0;x\a" + "t" * 500, server="s\u202e\n"))

    assert len(said) < 200
    assert said.isprintable()
    assert "[U+001B]" in said
