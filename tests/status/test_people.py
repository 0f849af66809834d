"""Who decides."""

from thoughtgate.status.people import PersonSummary, summarize_people


def test_people_are_counted_by_what_they_decided() -> None:
    found = summarize_people(
        [
            ("console:ann", "approved", 10.0, 14.0),
            ("console:bob", "rejected", 10.0, 11.0),
            ("console:ann", "rejected", 20.0, 28.0),
            ("console:ann", "approved", 1.0, 7.0),
        ]
    )

    assert found == [
        PersonSummary("console:ann", 3, 2, 6, 28.0),
        PersonSummary("console:bob", 1, 0, 1, 11.0),
    ]
    assert summarize_people([]) == []
