"""What a person sees in a terminal, and what the typed answers mean."""

import os
import pwd

import pytest
from tests.support.approvals import NOW, a_no, a_yes, an_approval

from thoughtgate.channels.terminal import (
    MAX_LINES,
    Answer,
    approval_rows,
    grant_rows,
    identity,
    parse_answer,
    render_countdown,
    render_left,
    render_question,
)
from thoughtgate.cli.tables import table_lines
from thoughtgate.core.approval import Reviewer
from thoughtgate.core.grant import EXACT, ONCE, SESSION, TOOL, UNTIL, Grant, Remember, grant_from


def a_grant(remember: Remember) -> Grant:
    made = grant_from(an_approval(), remember, by=Reviewer("terminal:ann"), ident="g1", now=NOW)
    assert isinstance(made, Grant)
    return made


def test_a_question_says_what_who_why_and_how_long() -> None:
    text = render_question(an_approval(approvers=("ann",), required=2, votes=(a_yes(),)), NOW + 55)
    for words in (
        "k3f9ab",
        "delete_file on files",
        "local, session s1",
        "default (rules[0])",
        "it deletes",
        "4:05",
        "2 people; one of ann; 1 so far",
        '"path": "/tmp/x"',
    ):
        assert words in text


def test_a_closed_question_says_how_it_ended() -> None:
    denied = an_approval(status="denied", votes=(a_no(reason="no way"),), session="", rule="")
    text = render_question(denied, NOW)
    assert "by terminal:bob: no way" in text
    assert "time left" not in text
    assert "asked by   local\n" in text
    assert "says it is" not in text
    claimed = an_approval(client="editor 2.1")
    assert "  says it is editor 2.1\n" in render_question(claimed, NOW)
    silent = an_approval(status="approved", votes=(a_yes(),))
    assert "by terminal:ann\n" in render_question(silent, NOW)
    gone = an_approval(status="withdrawn", closed_reason="the caller is gone")
    assert "the caller is gone" in render_question(gone, NOW)


def test_long_arguments_are_cut_unless_all_is_wanted() -> None:
    arguments = "[" + ",".join(str(n) for n in range(100)) + "]"
    asked = an_approval(arguments=arguments, folded=True)
    short, whole = render_question(asked, NOW), render_question(asked, NOW, whole=True)
    assert len(short.splitlines()) < MAX_LINES + 15
    assert "approvals show k3f9ab" in short
    assert "    99" not in short.replace("...", "")
    assert "99" in whole
    assert "long values are shortened" in whole


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\r", "\u202e", "\x9b31m", "\x00", "a\nb", "\u2028"]
)
def test_nothing_from_an_agent_can_steer_the_terminal(hostile: str) -> None:
    asked = an_approval(
        tool=f"x{hostile}",
        server=f"s{hostile}",
        reason=hostile,
        principal=hostile,
        client=f"c{hostile}",
        session=hostile,
        rule=hostile,
        arguments='{"a":"'
        + hostile.encode("unicode_escape").decode("ascii").replace("\\x", "\\u00")
        + '"}',
    )
    table = "\n".join(table_lines(("id", "tool", "arguments"), approval_rows([asked], NOW)))
    for text in (render_question(asked, NOW), table):
        assert all(line.isprintable() for line in text.split("\n"))


def test_a_row_has_the_time_left_and_short_arguments() -> None:
    asked = an_approval(arguments='{"a":"' + "x" * 500 + '"}')
    rows = approval_rows([asked, an_approval(status="used", id="zz")], NOW)
    assert list(rows[0]) == ["id", "status", "server", "tool", "left", "arguments"]
    assert list(rows[0].values())[:5] == ["k3f9ab", "pending", "files", "delete_file", "5:00"]
    assert len(rows[0]["arguments"]) == 60
    assert rows[0]["arguments"].endswith("…")
    assert rows[1]["left"] == ""


@pytest.mark.parametrize(
    ("after", "left"),
    [(0, "5:00"), (240, "1:00"), (299, "0:01"), (999, "0:00"), (-3300, "1:00:00")],
)
def test_the_time_left_counts_down(after: float, left: str) -> None:
    assert render_left(an_approval(), NOW + after) == left


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0:00"), (65, "1:05"), (3661, "1:01:01"), (-1, "0:00")]
)
def test_a_countdown_shows_hours_only_when_there_are_any(seconds: float, expected: str) -> None:
    assert render_countdown(seconds) == expected


def test_grants_say_what_they_allow_and_until_when() -> None:
    grants = [
        a_grant(Remember(SESSION, TOOL)),
        a_grant(Remember(ONCE, EXACT)),
        a_grant(Remember(UNTIL, EXACT, 7200)),
        a_grant(Remember(UNTIL, EXACT, 600)),
    ]
    rows = grant_rows(grants, NOW)
    assert rows[0]["allows"] == "any arguments"
    assert [row["until"] for row in rows] == [
        "session s1 ends",
        "used once",
        "2h00m more",
        "10m more",
    ]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y\n", Answer(approve=True)),
        (" YES  all good ", Answer(approve=True, reason="all good")),
        ("n not today", Answer(approve=False, reason="not today")),
        ("no", Answer(approve=False)),
        ("s", Answer(approve=True, remember=Remember(SESSION, EXACT))),
        ("tool please", Answer(approve=True, reason="please", remember=Remember(SESSION, TOOL))),
        ("", None),
        ("yesterday", None),
        ("ok", None),
        ("yn", None),
    ],
)
def test_only_a_clear_answer_is_an_answer(line: str, answer: Answer | None) -> None:
    assert parse_answer(line) == answer


def test_the_person_is_the_user_and_not_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert identity() == f"terminal:{pwd.getpwuid(os.getuid()).pw_name}"


def test_a_user_without_a_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 987_654_321)
    assert identity() == "terminal:uid-987654321"


@pytest.mark.promise("params-are-bound")
def test_a_question_shows_what_else_the_request_carries() -> None:
    assert "extra" not in render_question(an_approval(), NOW)
    shown = render_question(an_approval(extra='{"cwd":"/etc\u202e"}'), NOW)
    assert '  other parameters\n    {\n      "cwd": "/etc' in shown
    assert "\u202e" not in shown
