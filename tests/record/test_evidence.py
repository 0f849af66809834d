from tests.support.records import T0

from thoughtgate.record.evidence import (
    checkpoint,
    is_signed,
    key_id,
    record_gap,
    record_opened,
    record_repaired,
    torn_bytes,
)

KEY = b"a key of some length"
CHAIN = "ab" * 32


def test_a_checkpoint_is_signed_by_its_key_alone() -> None:
    body = checkpoint(T0, KEY, CHAIN, closing=False).body["checkpoint"]
    assert is_signed(KEY, body)
    assert not is_signed(b"another", body)
    assert not is_signed(KEY, {**body, "covers": "cd" * 32})
    assert not is_signed(KEY, {**body, "closing": True})


def test_a_signature_of_a_wrong_shape_is_no_signature() -> None:
    assert not is_signed(KEY, {})
    assert not is_signed(KEY, {"signature": 1, "covers": CHAIN})
    assert not is_signed(KEY, {"signature": "é", "covers": CHAIN})
    assert not is_signed(KEY, {"signature": "ab", "covers": None})


def test_the_name_of_a_key_does_not_tell_the_key() -> None:
    assert key_id(KEY) == key_id(KEY)
    assert key_id(KEY) != key_id(KEY + b"!")
    assert KEY.decode() not in key_id(KEY)


def test_a_closed_off_line_has_the_digest_of_the_torn_one() -> None:
    assert torn_bytes(b"half\n") == torn_bytes(b"half")
    assert torn_bytes(b"half").size == 4


def test_the_record_speaks_of_itself_under_record() -> None:
    opened = record_opened(T0, number=3, previous_file="a.000002", previous_chain=CHAIN)
    assert opened.body["record"] == {
        "file": 3,
        "previous_file": "a.000002",
        "previous_chain": CHAIN,
    }
    assert record_gap(T0, 4, "full").body["record"] == {"lost": 4, "reason": "full"}
    assert record_repaired(T0, torn_bytes(b"x")).body["record"]["torn_bytes"] == 1
