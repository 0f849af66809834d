"""Sealed states: for one principal, one call, one set of rules, once, and for ten minutes."""

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.elicitation import PROMISE_S, STATE_PREFIX
from thoughtgate.gate.approvals.prompt_seals import DIRECTORY, MAX_USED, PromptSeals, open_seals
from thoughtgate.gate.keys import KeyPlace, KeyRing

AT = 1_000_000.0
PARAMS: dict[str, Any] = {"name": "drop", "arguments": {"path": "/a", "n": 1.5}}
CALL: tuple[str, dict[str, Any]] = ("tools/call", PARAMS)


def seals(
    folder: Path, *, gate: str = "proxy", rules: str = "v1", keys: str = "", is_shared: bool = False
) -> PromptSeals:
    return open_seals(KeyPlace(str(folder), keys), gate, lambda: rules, is_shared=is_shared)


def state_of(made: PromptSeals) -> str:
    return made.of("up", "ann").give("", *CALL, AT + PROMISE_S)


def test_a_state_stands_for_its_call_once(tmp_path: Path) -> None:
    made = seals(tmp_path)
    state = state_of(made)

    assert state.startswith(STATE_PREFIX)
    assert made.of("up", "ann").spend(state, *CALL, AT + 1)
    assert not made.of("up", "ann").spend(state, *CALL, AT + 1)


def test_another_process_of_the_gate_knows_a_state_and_that_it_was_used(tmp_path: Path) -> None:
    state = state_of(seals(tmp_path))

    assert seals(tmp_path).of("up", "ann").spend(state, *CALL, AT)
    assert not seals(tmp_path).of("up", "ann").spend(state, *CALL, AT)
    (used,) = (tmp_path / DIRECTORY).iterdir()
    assert used.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("whose", "method", "params", "at"),
    [
        (("down", "ann"), *CALL, AT),
        (("up", "bob"), *CALL, AT),
        (("up", "ann"), "prompts/get", PARAMS, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "arguments": {"path": "/b", "n": 1.5}}, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "more": 1}, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "arguments": {"path": "\ud800"}}, AT),
        (("up", "ann"), *CALL, AT + PROMISE_S + 1),
        (("up", "ann"), *CALL, AT - 10),
    ],
)
def test_a_state_stands_for_nothing_else(
    tmp_path: Path, whose: tuple[str, str], method: str, params: dict[str, Any], at: float
) -> None:
    made = seals(tmp_path)

    assert not made.of(*whose).spend(state_of(made), method, params, at)


def test_a_state_of_another_gate_or_other_rules_stands_for_nothing(tmp_path: Path) -> None:
    state = state_of(seals(tmp_path))

    assert not seals(tmp_path, gate="serve").of("up", "ann").spend(state, *CALL, AT)
    assert not seals(tmp_path, rules="v2").of("up", "ann").spend(state, *CALL, AT)


def test_gates_with_common_keys_know_each_others_states(tmp_path: Path) -> None:
    keys, old, new = tmp_path / "keys", "a1" * 32, "b2" * 32
    keys.touch(0o600)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    keys.write_text(f"{old}\n{new}\n")
    one = seals(folders[0], gate="/a", keys=str(keys), is_shared=True)
    state = state_of(one)
    keys.write_text(f"{new}\n{old}\n")
    two = seals(folders[1], gate="/b", keys=str(keys), is_shared=True)

    # The other gate has another path, the keys in another order, and a clock that is behind.
    assert two.of("up", "ann").spend(state, *CALL, AT - 50)
    keys.write_text(f"{new}\n")
    retired = seals(tmp_path, gate="/c", keys=str(keys), is_shared=True)
    assert not retired.of("up", "ann").spend(state_of(one), *CALL, AT)


def test_every_altered_character_breaks_the_seal(tmp_path: Path) -> None:
    made = seals(tmp_path)
    state = state_of(made)
    for place in range(len(STATE_PREFIX), len(state)):
        other = "A" if state[place] != "A" else "B"
        altered = state[:place] + other + state[place + 1 :]
        assert not made.of("up", "ann").spend(altered, *CALL, AT)
    assert made.of("up", "ann").spend(state, *CALL, AT), "what failed has not used it up"


@given(
    st.one_of(st.text(), st.binary(max_size=80).map(lambda b: base64.urlsafe_b64encode(b).decode()))
)
def test_what_was_never_sealed_stands_for_nothing(text: str) -> None:
    made = PromptSeals(lambda: KeyRing([b"k" * 32]), Path("/nonexistent/used"), lambda: "v1")

    assert not made.of("up", "ann").spend(STATE_PREFIX + text, *CALL, AT)


def test_a_call_without_a_canonical_form_gets_no_state(tmp_path: Path) -> None:
    params = {"arguments": {"n": float("nan")}}

    assert seals(tmp_path).of("up", "ann").give("", "tools/call", params, AT) == ""


def test_what_cannot_be_marked_as_used_is_not_used(tmp_path: Path) -> None:
    made = seals(tmp_path)
    (tmp_path / DIRECTORY).write_text("in the way", "utf-8")

    assert not made.of("up", "ann").spend(state_of(made), *CALL, AT)


def test_used_states_are_forgotten_when_they_could_not_be_shown_again(tmp_path: Path) -> None:
    made = seals(tmp_path)
    folder = tmp_path / DIRECTORY
    folder.mkdir()
    for number in range(MAX_USED):
        (folder / f"{int(AT) - 5}-{number:x}").touch()

    assert made.of("up", "ann").spend(state_of(made), *CALL, AT)
    assert len(list(folder.iterdir())) == 1


def test_no_more_states_are_used_than_can_be_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.gate.approvals.prompt_seals.MAX_USED", 1)
    made = seals(tmp_path)

    assert made.of("up", "ann").spend(state_of(made), *CALL, AT)
    assert not made.of("up", "ann").spend(state_of(made), *CALL, AT)
