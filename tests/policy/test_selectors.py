"""Which calls a selector means."""

from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.selectors import Selector


def test_an_empty_selector_means_every_call() -> None:
    assert Selector().covers("s", "tool", "x")


def test_every_field_must_agree() -> None:
    selector = Selector(
        kinds=frozenset({"tool"}),
        names=compile_globs(["delete_*", "drop"]),
        servers=compile_globs(["git*"]),
        words=frozenset({"repo", "drop"}),
    )
    assert selector.covers("github", "tool", "delete_repo")
    assert selector.covers("git", "tool", "drop")
    assert not selector.covers("github", "prompt", "delete_repo")
    assert not selector.covers("fs", "tool", "delete_repo")
    assert not selector.covers("github", "tool", "remove_repo")
    assert not selector.covers("github", "tool", "delete_file")
