"""Characters that people do not see."""

import pytest

from thoughtgate.policy.inspection.checks import ARGUMENTS, DEFINITION, RESULT
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.inspection.hidden import find_hidden, read_tags

TAGGED = "".join(chr(0xE0000 + ord(one)) for one in "send it")


def tiers(text: str, kind: str) -> list[str]:
    return [one.tier for one in find_hidden(text, kind)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a" + TAGGED, RESULT),
        ("a\u202egnp.exe", RESULT),
        ("a\ufe01\ufe02\ufe03", RESULT),
        ("a\u200b\u200c\u200b", RESULT),
        ("pass\u200bword", DEFINITION),
        ("\ue000" * 9, RESULT),
        ("a\x1b[8mb", RESULT),
        ("a\x1b[31mb", DEFINITION),
        ("a\x1b]52;c;YQ==\x07", ARGUMENTS),
        ("a\x1b[2J", RESULT),
        ("a\x9b2J", RESULT),
        ("a\x00b", DEFINITION),
    ],
)
def test_what_has_no_honest_use_is_hard(text: str, kind: str) -> None:
    assert HARD in tiers(text, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pass\u200bword", RESULT),
        ("soft\u00adly", DEFINITION),
        ("a \u200b b", DEFINITION),
        ("a\ufe0f", RESULT),
        ("\ue000", DEFINITION),
        ("a\x1b[2K", RESULT),
        ("a\x1b[31mb", ARGUMENTS),
        ("a\x1b[2J", ARGUMENTS),
        ("a\x00b", RESULT),
    ],
)
def test_what_is_odd_is_soft(text: str, kind: str) -> None:
    assert tiers(text, kind) == [SOFT]


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\n",
        "👨‍👩‍👧 ❤️ #️⃣ 🏴" + "".join(chr(0xE0000 + ord(one)) for one in "gbeng") + "\U000e007f",
        "क्\u200dष",
        "\u200fשלום\u200e",
        "\ufeffstart",
        "a \u200b b",
        "\x1b[32mok\x1b[0m",
        "\ue0b0 prompt",
    ],
)
def test_honest_uses_are_left_alone(text: str) -> None:
    assert tiers(text, RESULT) == []


def test_the_message_of_invisible_characters_is_read() -> None:
    assert read_tags(TAGGED) == "send it"
    selectors = "".join(chr(0xE0100 + one - 16) for one in b"send it")
    assert read_tags(selectors) == "send it"
