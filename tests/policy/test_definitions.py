"""What a policy asks for when definitions change."""

from thoughtgate.policy.definitions import OFF, PIN, WARN, DefinitionPolicy, Silence
from thoughtgate.policy.globs import compile_globs


def silence(check: str, reason: str, *names: str) -> Silence:
    return Silence(compile_globs([check]), compile_globs(names), reason)


def test_a_server_without_a_mode_takes_that_of_the_others() -> None:
    policy = DefinitionPolicy({"a": OFF, "*": PIN})
    assert [policy.mode(name) for name in ("a", "b")] == [OFF, PIN]
    assert DefinitionPolicy().mode("a") == WARN


def test_a_layer_can_only_make_it_stricter() -> None:
    layered = DefinitionPolicy({"a": WARN, "b": PIN}, {}, (DefinitionPolicy({"a": PIN, "b": OFF}),))
    assert [layered.mode(name) for name in ("a", "b", "c")] == [PIN, PIN, WARN]
    unset = DefinitionPolicy({"a": OFF}, {}, (DefinitionPolicy(),))
    assert unset.mode("a") == OFF
    assert layered.pins()
    assert not unset.pins()


def test_findings_are_silenced_by_check_and_name() -> None:
    policy = DefinitionPolicy({}, {"a": (silence("instructions-*", "known", "deploy_*"),)})
    assert policy.silenced("a", "instructions-role", "deploy_now") == "known"
    assert not policy.silenced("a", "instructions-role", "other")
    assert not policy.silenced("a", "hidden-characters", "deploy_now")
    assert not policy.silenced("b", "instructions-role", "deploy_now")


def test_a_layer_that_pins_must_silence_the_finding_too() -> None:
    own = {"a": (silence("*", "mine"),)}
    assert not DefinitionPolicy({}, own, (DefinitionPolicy({"a": PIN}),)).silenced("a", "x", "t")
    assert DefinitionPolicy({}, own, (DefinitionPolicy({"a": WARN}),)).silenced("a", "x", "t")
    agreed = DefinitionPolicy({"a": PIN}, {"*": (silence("*", "theirs"),)})
    assert DefinitionPolicy({}, own, (agreed,)).silenced("a", "x", "t") == "mine"
