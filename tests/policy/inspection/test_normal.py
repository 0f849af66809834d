"""One spelling of a text."""

import pytest

from thoughtgate.policy.inspection.normal import find_mixed, normalise


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("IGNORE", "ignore"),
        ("ＩＧＮＯＲＥ", "ignore"),
        ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
        ("ig\u200bno\u200dre", "ignore"),
        ("Ignоrе", "ignore"),
        ("ɪɢɴᴏʀᴇ", "ignore"),
        ("don\u2019t", "don't"),
        ("Café", "café"),
        ("ÉCOLE", "école"),
        ("пароль", "пароль"),
        ("\u200b", ""),
    ],
)
def test_a_text_has_one_spelling(text: str, plain: str) -> None:
    assert normalise(text).text == plain


def test_positions_lead_back_to_the_text() -> None:
    text = "say ig\u200bnore now"
    normal = normalise(text)
    at = normal.text.index("ignore")
    start, end = normal.original(at, at + 6)
    assert text[start:end] == "ig\u200bnore"
    assert normalise("abc").original(1, 2) == (1, 2)


def test_words_of_one_script_and_units_are_not_mixed() -> None:
    assert find_mixed("пароль password 5µm Δx") == ()
    assert find_mixed("a рassword b") == ((2, 10),)
    assert find_mixed("a" * 200 + "р" * 200) != ()
