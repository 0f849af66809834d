"""Records of a rewrite are plain values."""

from thoughtgate.agents.entry_changes import EntryChange, EntryRecord


def test_records_with_the_same_content_are_the_same() -> None:
    change = EntryChange("replace", ("command",), "tg", old='"npx"')
    one = EntryRecord(("mcpServers", "a"), "a", ("tg", "shim", "--"), (change,))
    two = EntryRecord(("mcpServers", "a"), "a", ("tg", "shim", "--"), (change,))
    assert one == two
    assert hash(one) == hash(two)
