"""Texts for Slack: escaped, visible, within limits; and replies read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.approvals import a_no, a_yes, an_approval
from tests.support.fake_slack import too_long

from thoughtgate.channels.slack_message import (
    escape,
    outcome_blocks,
    outcome_text,
    parse_reply,
    request_blocks,
    request_text,
)

texts = st.text(max_size=400)


def shown(blocks: list[dict[str, Any]]) -> str:
    return json.dumps(blocks, ensure_ascii=False)


def test_nobody_can_be_mentioned_by_an_argument() -> None:
    asked = an_approval(arguments=json.dumps({"text": "<!channel> <@U999> <https://evil|here>"}))
    text = shown(request_blocks(asked, (), "+1", "-1"))

    assert "<!channel>" not in text
    assert "<@U999>" not in text
    assert "&lt;!channel&gt;" in text


@pytest.mark.parametrize("backticks", range(3, 12))
def test_an_argument_cannot_end_its_block_and_speak_for_us(backticks: int) -> None:
    fence = "`" * backticks
    asked = an_approval(arguments=json.dumps({"text": f"{fence} *Approved already* {fence} ok"}))
    text = request_blocks(asked, (), "+1", "-1")[2]["text"]["text"]

    assert text.startswith("```")
    assert text.endswith("```")
    assert "```" not in text[3:-3]


def test_nobody_can_be_mentioned_by_the_name_of_a_tool() -> None:
    asked = an_approval(tool="<!channel>", server="<https://evil.example|shop>")

    assert request_text(asked) == (
        "Approval k3f9ab: &lt;!channel&gt; on &lt;https://evil.example|shop&gt;"
    )


def test_a_client_cannot_add_a_field() -> None:
    asked = an_approval(client="editor\n*Reason*\nread only")
    fields = request_blocks(asked, (), "+1", "-1")[1]["fields"]

    assert {"type": "mrkdwn", "text": "*Says it is*\neditor[U+000A]*Reason*[U+000A]read only"} in [
        {name: field[name] for name in ("type", "text")} for field in fields
    ]


def test_invisible_characters_are_written_out() -> None:
    assert escape("a\u202eb\x00") == "a[U+202E]b[U+0000]"


def test_how_many_must_agree_is_said() -> None:
    assert "2 people must agree" in shown(request_blocks(an_approval(required=2), (), "+1", "-1"))


@pytest.mark.promise("approver-sees-every-character")
@pytest.mark.parametrize(
    "long", [{"folded": True}, {"arguments": json.dumps({"a": "b" * 3000})}, {"tool": "t" * 3000}]
)
def test_a_call_that_is_not_shown_whole_asks_only_for_a_denial(long: dict[str, Any]) -> None:
    text = shown(request_blocks(an_approval(**long), (), "+1", "-1"))

    assert ":+1:" not in text
    assert "can only be denied here" in text
    assert "thoughtgate approvals show k3f9ab" in text
    assert "Only the beginning is shown" in text


def test_what_is_shown_whole_names_everything() -> None:
    asked = an_approval(tool="t" * 200, arguments='{"a":"b\\u3164"}', client="edi\u200btor <2>")
    text = shown(request_blocks(asked, (), "+1", "-1"))

    assert "t" * 200 in text
    assert "b[U+3164]" in text
    assert "asked by: local" in text
    assert "*Says it is*\\nedi[U+200B]tor &lt;2&gt;" in text


def test_a_title_hides_nothing() -> None:
    asked = an_approval(tool="x\u202e", server="\u3164")
    assert request_blocks(asked, (), "+1", "-1")[0]["text"]["text"] == "x[U+202E] on [U+3164]"
    assert "x[U+202E]" in request_text(asked)


def test_long_arguments_are_cut_and_say_where_the_rest_is() -> None:
    asked = an_approval(arguments=json.dumps({"text": "&" * 9000}))
    blocks = request_blocks(asked, (), "+1", "-1")
    text = blocks[2]["text"]["text"]

    assert "thoughtgate approvals show k3f9ab" in text
    assert not too_long({"blocks": blocks})
    assert "&amp;```" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"status": "denied", "votes": (a_no("slack:U1", reason="no <b>"),)},
            "Denied by <@U1>: no &lt;b&gt;",
        ),
        ({"status": "used", "votes": (a_yes("console:ann"),)}, "Approved by console:ann"),
        (
            {"status": "approved", "votes": (a_yes("slack:not an id"),)},
            "Approved by slack:not an id",
        ),
        (
            {"status": "withdrawn", "closed_reason": "the caller is gone"},
            "Withdrawn: the caller is gone",
        ),
        ({"status": "expired"}, "Nobody answered in time"),
        ({"status": "void", "closed_reason": "stale"}, "Void: stale"),
    ],
)
def test_outcomes_in_words(changes: dict[str, Any], expected: str) -> None:
    assert expected in outcome_text(an_approval(**changes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("approve", (True, "")),
        ("Yes, go on", (True, "go on")),
        ("  DENY   too risky ", (False, "too risky")),
        ("*no*", (False, "")),
        ("not approve", None),
        ("", None),
        ("nobody knows", None),
    ],
)
def test_replies_are_read_by_their_first_word(text: str, expected: tuple[bool, str] | None) -> None:
    assert parse_reply(text) == expected


@settings(max_examples=150, deadline=None)
@given(tool=texts, server=texts, reason=texts, key=texts, value=st.text(max_size=6000))
def test_every_message_keeps_to_slacks_limits(
    tool: str, server: str, reason: str, key: str, value: str
) -> None:
    asked = an_approval(
        tool=tool or "t", server=server, reason=reason, arguments=json.dumps({key: value}), status="denied",
        votes=(a_no(reason=reason),),
    )  # fmt: skip

    for blocks in (request_blocks(asked, ("U1",), "+1", "-1"), outcome_blocks(asked)):
        assert not too_long({"blocks": blocks, "text": request_text(asked)})


@pytest.mark.promise("params-are-bound")
def test_a_message_shows_what_else_the_request_carries() -> None:
    plain = request_blocks(an_approval(), (), "yes", "no")
    blocks = request_blocks(an_approval(extra='{"cwd":"/etc```"}'), (), "yes", "no")
    assert "cwd" not in json.dumps(plain)
    assert '\\"cwd\\": \\"/etc` ``\\"' in json.dumps(blocks)
