"""Readings of URIs, paths and keys: what servers in other languages make of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.readings import (
    MAX_READINGS,
    MAX_VARIANTS,
    MISSING,
    ArgumentReadings,
    fold_path,
    path_readings,
    uri_readings,
    without_dot_segments,
)

PASSWD = "file:///etc/passwd"


def others(uri: str) -> tuple[str, ...]:
    found = uri_readings(uri)
    assert found is not None
    return found


@pytest.mark.promise("readings-uri")
@pytest.mark.parametrize(
    "spelling",
    [
        "file:///tmp/../etc/passwd",
        "file:///./etc/passwd",
        "/etc/passwd",
        "/tmp/../etc/passwd",
        "/%65tc/passwd",
        "//etc/passwd",
        "\\etc\\passwd",
        "/etc/passwd?x",
        "file:///etc//passwd",
        "file:////etc/passwd",
        "FILE:///etc/passwd",
        "file:///%65tc/passwd",
        "file:///tmp/%2e%2e/etc/passwd",
        "file:///tmp/%2E./etc/passwd",
        "file:///tmp/%252e%252e/etc/passwd",
        "file:///tmp%2f..%2fetc/passwd",
        "file:///tmp\\..\\etc\\passwd",
        "file:///tmp\\x/../../etc/passwd",
        "file:///../../etc/passwd",
        "file:/etc/passwd",
        "file:etc/passwd",
        "file:\\etc\\passwd",
        "file://localhost/etc/passwd",
        "file://LOCALHOST/etc/passwd",
        "file://127.0.0.1/etc/passwd",
        "file://etc/passwd",
        "file:\\\\localhost\\etc\\passwd",
        "file:///tmp/.\t./etc/passwd",
        "fi\nle:///etc/passwd",
        " file:///etc/passwd",
        "file:///etc/passwd\x00",
        "file:///x%3fy/%2e%2e/%65tc/passwd",
        "file:///tmp/.%09./etc/passwd",
        "file:/tmp/%2e%2e%5cetc/passwd",
        "file:///etc/passwd?x",
        "file:///etc/passwd#x",
        "file:/etc/passwd?x#/../y",
        "file:///etc/passwd/",
        "file:///et%63/passwd\\",
        "file:///etc//../x/..//passwd",
        "file:///etc/passwd%00.txt",
        "file:///etc/x%00/../passwd",
    ],
)
def test_every_spelling_of_a_file_is_known_for_what_it_opens(spelling: str) -> None:
    assert PASSWD in others(spelling)


@pytest.mark.promise("readings-uri")
@pytest.mark.parametrize(
    ("spelling", "reading"),
    [
        ("HTTPS://Example.COM/A", "https://example.com/A"),
        ("https:example.com/a", "https://example.com/a"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
        ("https:////example.com/a", "https://example.com/a"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:00443/a", "https://example.com/a"),
        ("https://example.com:/a", "https://example.com/a"),
        ("https://example.com:8443/A", "https://example.com:8443/A"),
        ("https://good.org@example.com/a", "https://example.com/a"),
        ("https://a:b@c@example.com/a", "https://example.com/a"),
        ("https://ex%61mple.com/a", "https://example.com/a"),
        ("https://\uff45xample.com/a", "https://example.com/a"),
        ("https://exam\u00adple.com/a", "https://example.com/a"),
        ("https://example\u3002com/a", "https://example.com/a"),
        ("https://b\u00fccher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://xn--bcher-kva.example/a", "https://b\u00fccher.example/a"),
        ("http://0x7f.1/a", "http://127.0.0.1/a"),
        ("http://2130706433/a", "http://127.0.0.1/a"),
        ("http://0177.0.0.1/a", "http://127.0.0.1/a"),
        ("https://example.com/a#../b", "https://example.com/a"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com.:8443/a", "https://example.com:8443/a"),
        ("http://[0:0::1]/a", "http://[::1]/a"),
        ("http://[::ffff:127.0.0.1]/a", "http://127.0.0.1/a"),
        ("http://[::ffff:7f00:1]/a", "http://127.0.0.1/a"),
        ("http://[::ffff:127.0.0.1]:80/a", "http://[::ffff:7f00:1]/a"),
        ("http://[x]/a", "http://[x]/a"),
        ("file:///C|/x", "file:///C:/x"),
        ("file:C:/x", "file:///C:/x"),
        ("file://C:/x", "file:///C:/x"),
        ("file:///C:/../x", "file:///C:/x"),
        ("https://b\u00fc\u00adcher.example/a", "https://b\u00fccher.example/a"),
        ("http://127.00.1\u200b/a", "http://127.0.0.1/a"),
        ("note://my note", "note://my%20note"),
        ("note://my%20note", "note://my note"),
        ("note://caf\u00e9", "note://caf%C3%A9"),
        ("note://caf%c3%a9", "note://caf\u00e9"),
        ("SECRET://K", "secret://K"),
        ("secret://K", "secret://k"),
        ("secret://H:/k", "secret://H/k"),
        ("secret://h:080/k", "secret://h:80/k"),
        ("secret://@H/k", "secret://H/k"),
        ("secret://h/x\\y/../k", "secret://h/k"),
        ("secret://h/x\\..\\k", "secret://h/k"),
        ("a/../b", "b"),
    ],
)
def test_other_parsers_read_a_uri_as(spelling: str, reading: str) -> None:
    assert reading in (spelling, *others(spelling))


@pytest.mark.parametrize(
    "uri",
    [
        PASSWD,
        "file:///",
        "note://today",
        "memo://a/b.c/d-e_f~g",
        "https://example.com/a?next=/../x",
        "note://today#morning",
        "urn:isbn:1",
        "ui://widget/index.html",
        "http://256.256.256.256/x/y",
        "http://1.2.3.4.5/a",
        "http://0x100000000/a",
        "",
        "x",
    ],
)
def test_a_plain_uri_has_one_reading(uri: str) -> None:
    assert others(uri) == ()


def test_a_host_that_is_no_name_is_left_alone() -> None:
    assert others("https://\u00df" + "a" * 70 + "/x")
    assert "https://xn--/x" not in others("https://XN--/x")[1:]


def test_a_path_that_ends_in_dots_stays_a_folder() -> None:
    assert "file:///a/" in others("file:///a/b/..")
    assert others("file:///..") == ("file:///",)


def test_bytes_that_are_not_text_do_not_trip_it() -> None:
    assert others("file:///%ff%fe/x")


PARTS = "http: file: x: / \\ %2e %252e %2f %5c %255c %20 @ E \u00e9 .. . localhost # ? %3f %40 C| :80 xn--"
ODD = st.sampled_from([*PARTS.split(), " ", "\t"])


@settings(max_examples=300, deadline=None)
@given(st.lists(ODD, max_size=12).map("".join) | st.text(max_size=60))
def test_any_text_has_a_bounded_number_of_readings(text: str) -> None:
    found = uri_readings(text)

    assert found is None or (len(found) <= MAX_READINGS and text not in found)


def test_a_uri_with_too_many_readings_has_none_that_could_be_trusted() -> None:
    assert uri_readings("http:%40Elocalhost::80/localhost\u00e9.%20//\\%255c%5c%3f@E") is None


def test_a_uri_encoded_over_and_over_is_left_after_a_few_rounds() -> None:
    deep = "file:///a/%2525252525252e%2525252525252e/b"

    assert 0 < len(others(deep)) <= 6


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abc./", max_size=40))
def test_resolving_twice_changes_nothing(text: str) -> None:
    once = without_dot_segments("/" + text)

    assert without_dot_segments(once) == once


@pytest.mark.parametrize(
    ("path", "readings"),
    [
        ("/a/b", ("/a/b",)),
        ("/a/../b//c/.", ("/b/c/",)),
        ("/a/..\\b", ("/a/..\\b", "/b", "/b")),
        ("/etc./x ", ("/etc./x ", "/etc./x ", "/etc/x")),
        ("/a/.. /b", ("/a/.. /b", "/a/.. /b", "/b")),
        ("/a/.../b", ("/a/.../b", "/a/.../b", "/a/b")),
        ("a\\.env", ("a\\.env", "a/.env", "a/.env")),
    ],
)
def test_a_path_is_read_as_systems_do(path: str, readings: tuple[str, ...]) -> None:
    assert path_readings(path) == readings


def test_a_path_is_also_read_as_a_program_in_c_does() -> None:
    texts = [text for text, _ in ArgumentReadings().texts("/etc/x/../key.pem\0.txt")]

    assert texts[0] == "/etc/x/../key.pem\0.txt"
    assert "/etc/key.pem" in texts


def test_disks_that_do_not_distinguish_case_take_these_for_the_same() -> None:
    assert fold_path("/ETC/Passwd") == fold_path("/etc/passwd")
    assert fold_path("/CAF\u00c9") == fold_path("/cafe\u0301")


@pytest.mark.promise("readings-keys")
@pytest.mark.parametrize(
    ("members", "values"),
    [
        ({"task": 1}, (1,)),
        ({}, (MISSING,)),
        ({"other": 1}, (MISSING,)),
        ({"Task": 1}, (MISSING, 1)),
        ({"task": 1, "TASK": 2}, (1, 2)),
        ({"ta\u017f\u212a": 1}, (MISSING, 1)),
        ({"ta\u017fk": 1, "tas\u212a": 2}, (MISSING, 1, 2)),
        ({"task\0x": 1, "task": 2}, (1, 2)),
    ],
)
def test_a_key_has_the_values_of_all_keys_that_fold_to_it(
    members: dict[str, Any], values: tuple[Any, ...]
) -> None:
    readings = ArgumentReadings()

    assert readings.values(members, "task") == values
    assert readings.values(members, "task") == values


def test_too_many_spellings_of_a_key_are_not_read() -> None:
    name = "abcdefgh"
    spellings = [
        "".join(c.upper() if bits >> place & 1 else c for place, c in enumerate(name))
        for bits in range(MAX_VARIANTS + 1)
    ]

    assert ArgumentReadings().values(dict.fromkeys(spellings, 1), name) is None


class _CountedKeys(dict[str, int]):
    """An object that counts how often all its keys are read."""

    reads = 0

    def __iter__(self) -> Any:
        self.reads += 1
        return super().__iter__()


def test_the_keys_of_an_object_are_folded_once() -> None:
    members = _CountedKeys(a=1, B=2)
    readings = ArgumentReadings()
    for key in ("a", "b", "c") * 100:
        readings.values(members, key)

    assert members.reads == 1
