"""Commands are values that say for whom they are."""

from thoughtgate.core.commands import AskPeople, ToAgent, ToServer, Withdraw


def test_a_frame_that_nobody_waits_for_has_no_key() -> None:
    assert ToServer(b"x").key is None
    assert ToAgent(b"x").key is None


def test_commands_with_the_same_values_are_equal() -> None:
    assert AskPeople(1, "c", "ops", 0.0) == AskPeople(1, "c", "ops", 0.0)
    assert Withdraw(1, "c", "why") != Withdraw("1", "c", "why")
