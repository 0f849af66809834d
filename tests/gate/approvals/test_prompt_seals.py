"""Sealed states: for one principal, one call, one set of rules, once, and for ten minutes."""

import base64
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.postgres import PostgresServer

from thoughtgate.core.elicitation import STATE_PREFIX, STATE_S
from thoughtgate.gate.approvals.prompt_seals import CLOCK_S, PromptSeals, open_seals
from thoughtgate.gate.keys import KeyPlace, KeyRing
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.used_prompts import UsedPrompts

AT = 1_000_000.0
PARAMS: dict[str, Any] = {"name": "drop", "arguments": {"path": "/a", "n": 1.5}}
CALL: tuple[str, dict[str, Any]] = ("tools/call", PARAMS)


class Refused(UsedPrompts):
    """A store that must not be reached."""

    def __init__(self) -> None:
        pass

    def time(self, at: float) -> float:
        return at

    def mark(self, nonce: str, expires_at: float, at: float) -> bool:
        raise AssertionError(nonce, expires_at, at)


NOTHING_USED = Refused()


def seals(folder: Path, *, gate: str = "proxy", rules: str = "v1", keys: str = "") -> PromptSeals:
    place = KeyPlace(str(folder), keys)
    return open_seals(place, gate, lambda: rules, open_database(folder))


def state_of(made: PromptSeals) -> str:
    return made.of("up", "ann").issue("", *CALL, AT + STATE_S)


def test_a_state_stands_for_its_call_once(tmp_path: Path) -> None:
    made = seals(tmp_path)
    state = state_of(made)

    assert state.startswith(STATE_PREFIX)
    assert made.of("up", "ann").use(state, *CALL, AT + 1)
    assert not made.of("up", "ann").use(state, *CALL, AT + 1)


def test_another_process_of_the_gate_knows_a_state_and_that_it_was_used(tmp_path: Path) -> None:
    state = state_of(seals(tmp_path))

    assert seals(tmp_path).of("up", "ann").use(state, *CALL, AT)
    assert not seals(tmp_path).of("up", "ann").use(state, *CALL, AT)


@pytest.mark.parametrize(
    ("whose", "method", "params", "at"),
    [
        (("down", "ann"), *CALL, AT),
        (("up", "bob"), *CALL, AT),
        (("up", "ann"), "prompts/get", PARAMS, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "arguments": {"path": "/b", "n": 1.5}}, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "more": 1}, AT),
        (("up", "ann"), "tools/call", {**PARAMS, "arguments": {"path": "\ud800"}}, AT),
        (("up", "ann"), *CALL, AT + STATE_S + 1),
        (("up", "ann"), *CALL, AT - 10),
    ],
)
def test_a_state_stands_for_nothing_else(
    tmp_path: Path, whose: tuple[str, str], method: str, params: dict[str, Any], at: float
) -> None:
    made = seals(tmp_path)

    assert not made.of(*whose).use(state_of(made), method, params, at)


def test_a_state_of_another_gate_or_other_rules_stands_for_nothing(tmp_path: Path) -> None:
    state = state_of(seals(tmp_path))

    assert not seals(tmp_path, gate="serve").of("up", "ann").use(state, *CALL, AT)
    assert not seals(tmp_path, rules="v2").of("up", "ann").use(state, *CALL, AT)


def test_gates_with_common_keys_know_each_others_states_and_use_each_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url()
    stack = ExitStack()

    def shared(folder: Path, gate: str) -> PromptSeals:
        database = stack.enter_context(closing(open_database(StoreLocation(folder, url))))
        return open_seals(KeyPlace(str(folder), str(keys)), gate, lambda: "v1", database)

    keys, old, new = tmp_path / "keys", "a1" * 32, "b2" * 32
    keys.touch(0o600)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    keys.write_text(f"{old}\n{new}\n")
    one = shared(folders[0], "/a")
    state = state_of(one)
    keys.write_text(f"{new}\n{old}\n")
    two = shared(folders[1], "/b")

    # The other gate has another path, and the keys in another order.
    assert two.of("up", "ann").use(state, *CALL, AT)
    assert not one.of("up", "ann").use(state, *CALL, AT)
    keys.write_text(f"{new}\n")
    retired = shared(tmp_path, "/c")
    assert not retired.of("up", "ann").use(state_of(one), *CALL, AT)
    stack.close()


def test_every_altered_character_breaks_the_seal(tmp_path: Path) -> None:
    made = seals(tmp_path)
    state = state_of(made)
    for place in range(len(STATE_PREFIX), len(state)):
        other = "A" if state[place] != "A" else "B"
        altered = state[:place] + other + state[place + 1 :]
        assert not made.of("up", "ann").use(altered, *CALL, AT)
    assert made.of("up", "ann").use(state, *CALL, AT), "what failed has not used it up"


@given(
    st.one_of(st.text(), st.binary(max_size=80).map(lambda b: base64.urlsafe_b64encode(b).decode()))
)
def test_what_was_never_sealed_stands_for_nothing(text: str) -> None:
    made = PromptSeals(lambda: KeyRing([b"k" * 32]), NOTHING_USED, lambda: "v1")

    assert not made.of("up", "ann").use(STATE_PREFIX + text, *CALL, AT)


def test_a_call_without_a_canonical_form_gets_no_state(tmp_path: Path) -> None:
    params = {"arguments": {"n": float("nan")}}

    assert seals(tmp_path).of("up", "ann").issue("", "tools/call", params, AT) == ""


def test_what_cannot_be_marked_as_used_is_not_used(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    made = open_seals(KeyPlace(str(tmp_path), ""), "proxy", lambda: "v1", database)
    state = state_of(made)
    database.close()

    assert not made.of("up", "ann").use(state, *CALL, AT)


class Ahead(UsedPrompts):
    """A store whose clock is a minute ahead of this gate's."""

    def time(self, at: float) -> float:
        return at + 60


def test_gates_with_different_clocks_agree_when_a_state_expires(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    slow = PromptSeals(lambda: KeyRing([b"k" * 32]), Ahead(database), lambda: "v1")
    exact = PromptSeals(lambda: KeyRing([b"k" * 32]), UsedPrompts(database), lambda: "v1")
    state = state_of(slow)

    # The slow gate said AT when it was AT + 60 everywhere else.
    assert not exact.of("up", "ann").use(state, *CALL, AT + 60 + STATE_S + CLOCK_S)
    assert exact.of("up", "ann").use(state, *CALL, AT + 60 - CLOCK_S / 2)
