"""What the record tells of servers."""

from thoughtgate.status import server_view as console_servers
from thoughtgate.status.server_view import ServerSummaries

TOOLS = "tools/list"


def listed(book: ServerSummaries, at: float, **entries: str) -> None:
    book.listed("files", TOOLS, entries=entries, hidden=frozenset({"drop"}), at=at)


def test_hidden_entries_are_marked() -> None:
    book = ServerSummaries()
    listed(book, 1.0, read="a", drop="b")
    (server,) = book.all()

    assert [each.name for each in server.entries(TOOLS)] == ["drop", "read"]
    assert [each.name for each in server.entries(TOOLS) if each.hidden] == ["drop"]
    assert server.changed == []


def test_a_hidden_entry_without_a_digest_is_known_too() -> None:
    book = ServerSummaries()
    listed(book, 1.0)

    assert [each.name for each in book.all()[0].entries(TOOLS) if each.hidden] == ["drop"]


def test_a_changed_description_is_seen_and_stands_first() -> None:
    book = ServerSummaries()
    listed(book, 1.0, read="a", write="x")
    listed(book, 2.0, read="a", write="y")
    server = book.servers["files"]

    assert [(each.name, each.changed_at) for each in server.changed] == [("write", 2.0)]
    assert server.entries(TOOLS)[0].name == "write"
    listed(book, 3.0, read="a", write="y")
    assert server.changed[0].changed_at == 2.0


def test_a_page_of_a_list_forgets_no_other_page() -> None:
    book = ServerSummaries()
    listed(book, 1.0, read="a")
    listed(book, 1.1, write="b")

    assert {each.name for each in book.servers["files"].entries(TOOLS)} >= {"read", "write"}


def test_servers_start_and_end() -> None:
    book = ServerSummaries()
    book.moved("files", running=True, at=1.0)
    assert [each.running for each in book.all()] == [True]
    book.moved("files", running=False, at=2.0)

    assert [each.running for each in book.all()] == [False]
    assert book.servers["files"].seen_at == 2.0
    book.moved("", running=True, at=3.0)
    assert set(book.servers) == {"files"}


def test_a_flood_of_servers_is_cut() -> None:
    book = ServerSummaries()
    for number in range(console_servers.MAX_SERVERS + 10):
        book.moved(f"s{number}", running=True, at=1.0)
        book.listed(f"s{number}", TOOLS, entries={}, hidden=frozenset(), at=1.0)

    assert len(book.servers) == console_servers.MAX_SERVERS
