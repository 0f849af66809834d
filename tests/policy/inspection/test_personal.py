"""Personal data that can be validated."""

import pytest

from thoughtgate.policy.inspection.personal import find_personal, is_card, is_iban, is_luhn


def found(text: str) -> list[tuple[str, str]]:
    return [(one.check, one.tier) for one in find_personal(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card 4539 5787 6362 1486", ("personal-card", "hard")),
        ("4539578763621486", ("personal-card", "soft")),
        ("card 4111-1111-1111-1111", ("personal-card", "soft")),
        ("Amex 378734493671000 exp", ("personal-card", "hard")),
        ("to GB94BARC10201530093459", ("personal-iban", "hard")),
        ("DE89 3704 0044 0532 0130 00", ("personal-iban", "soft")),
        ("SSN: 536-22-8145", ("personal-number", "hard")),
        ("SSN 123-45-6789", ("personal-number", "soft")),
    ],
)
def test_a_valid_number_is_found(text: str, expected: tuple[str, str]) -> None:
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "4539578763621487",
        "1234567890123456",
        "order 1760000000000000",
        "id_4539578763621486",
        "x4539578763621486",
        "9" * 60,
        "DE00370400440532013000",
        "XX89370400440532013000",
        "536-22-8145",
        "phone 415-555-0132",
        "1234 5678 9012",
        "DE89 12",
        "4539578763621486,1234567890123,9876543210987",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert found(text) == []


def test_check_digits() -> None:
    assert is_luhn("4539578763621486")
    assert not is_luhn("4539578763621487")
    assert is_card("30569309025904")
    assert is_card("6011111111111117")
    assert is_card("3530111333300000")
    assert not is_card("9999999999999995")
    assert is_iban("GB94BARC10201530093459")
