"""Who a client is by its certificate."""

from typing import Any

import pytest

from thoughtgate.front.client_certificates import name_in, subject_text


def _subject(*parts: tuple[str, str]) -> Any:
    return tuple((part,) for part in parts)


def test_a_subject_is_written_with_its_most_specific_part_first() -> None:
    subject = _subject(("countryName", "CH"), ("organizationName", "Ex"), ("commonName", "bot"))

    assert name_in({"subject": subject}) == "CN=bot,O=Ex,C=CH"


def test_a_single_uri_names_the_owner_before_the_subject_does() -> None:
    subject = _subject(("organizationName", "SPIRE"))
    one = (("URI", "spiffe://example.org/bot"), ("DNS", "bot.example.org"))

    assert name_in({"subject": subject, "subjectAltName": one}) == "spiffe://example.org/bot"
    two = (*one, ("URI", "spiffe://example.org/other"))
    assert name_in({"subject": subject, "subjectAltName": two}) == "O=SPIRE"


@pytest.mark.parametrize("uri", ["CN=boss,O=Ex", "local", "agent", "(gate)", "", ":x", "1:x"])
def test_what_is_no_uri_cannot_pass_for_another_name(uri: str) -> None:
    subject = _subject(("organizationName", "Ex"), ("commonName", "bot"))

    found = name_in({"subject": subject, "subjectAltName": (("URI", uri),)})

    assert found == "CN=bot,O=Ex"


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ()}])
def test_a_certificate_may_name_nobody(certificate: dict[str, Any] | None) -> None:
    assert not name_in(certificate)


def test_two_different_subjects_never_look_alike() -> None:
    written = {
        subject_text(_subject(("commonName", "a,O=b"))),
        subject_text(_subject(("organizationName", "b"), ("commonName", "a"))),
        subject_text(((("commonName", "a"), ("organizationName", "b")),)),
        subject_text(_subject(("commonName", "a+O=b"))),
        subject_text(_subject(("commonName", " a"))),
        subject_text(_subject(("commonName", "a "))),
        subject_text(_subject(("commonName", "a"))),
        subject_text(_subject(("commonName", "#a"))),
        subject_text(_subject(("commonName", "\\#a"))),
    }

    assert len(written) == 9
