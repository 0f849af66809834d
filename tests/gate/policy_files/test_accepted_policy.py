"""Gates that an agent starts compare their config with the one last accepted."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, initialize
from tests.support.hub import sample, serving
from tests.support.policy_changes import decide_change, policy_questions
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.waiting import wait_for

from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, config_digest, load_configuration
from thoughtgate.gate.policy_files.accepted_policy import FIRST_USE, keep_accepted
from thoughtgate.gate.policy_files.trusted_files import distrust_file, trust_file
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.policies import AcceptedPolicy, PolicyStore

DENY = "schema: 1\ndefault: deny\n"
FORWARD = "schema: 1\ndefault: forward\n"


class Start:
    """Starts of a gate on one config file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "thoughtgate.yaml"
        self.state = folder / "state"
        self.said: list[str] = []

    def load(self, text: str, environ: dict[str, str] | None = None, **more: Any) -> Loaded:
        self.path.write_text(text, "utf-8")
        env = environ or {}
        loaded = load_configuration(str(self.path), env, str(self.path.parent))
        return keep_accepted(loaded, env, str(self.state), self.said.append, **more)

    def accepted(self) -> AcceptedPolicy | None:
        with closing(open_database(self.state)) as database:
            return PolicyStore(database).accepted(str(self.path))

    def accepted_text(self) -> str:
        found = self.accepted()
        return found.file.texts[str(self.path)] if found is not None else ""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return Start(tmp_path)


def test_the_first_use_accepts(start: Start) -> None:
    loaded = start.load(DENY)

    assert loaded.proposed is None
    found = start.accepted()
    assert found is not None
    assert (found.by, start.said) == (FIRST_USE, [])


def test_the_built_in_policy_needs_no_acceptance(start: Start, tmp_path: Path) -> None:
    loaded = load_configuration(None, {"HOME": str(tmp_path)}, str(tmp_path))

    assert keep_accepted(loaded, {}, str(start.state), start.said.append) is loaded


@pytest.mark.promise("no-loosening-restart")
def test_a_loosened_file_waits_and_the_accepted_one_stays(start: Start) -> None:
    start.load(DENY)

    loaded = start.load(FORWARD)

    assert (loaded.policy.default, loaded.settings.default) == ("deny", "deny")
    assert loaded.proposed is not None
    assert loaded.proposed.policy.default == "forward"
    assert start.accepted_text() == DENY
    assert "thoughtgate policy accept" in start.said[0]


@pytest.mark.promise("no-loosening-restart")
@pytest.mark.parametrize("instead", ["", "thoughtgate.yaml"])
def test_an_accepted_file_cannot_be_removed_or_replaced(tmp_path: Path, instead: str) -> None:
    home = tmp_path / "config" / "thoughtgate"
    home.mkdir(parents=True)
    mine = home / "thoughtgate.yml"
    mine.write_text(DENY, "utf-8")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}

    def begin() -> Loaded:
        loaded = load_configuration(None, environ, str(tmp_path))
        return keep_accepted(loaded, environ, str(tmp_path / "state"), lambda _: None)

    begin()
    mine.unlink()
    if instead:
        (home / instead).write_text(FORWARD, "utf-8")

    with pytest.raises(ConfigError, match="thoughtgate policy accept"):
        begin()


@pytest.mark.promise("no-loosening-restart")
@pytest.mark.parametrize("change", ["edit", "remove", "another"])
def test_a_trusted_project_file_cannot_be_changed_to_get_the_user_s_own(
    tmp_path: Path, change: str
) -> None:
    own, path = tmp_path / "home" / "thoughtgate" / "thoughtgate.yaml", tmp_path / "thoughtgate.yml"
    own.parent.mkdir(parents=True)
    own.write_text(FORWARD, "utf-8")
    path.write_text(DENY, "utf-8")
    state = str(tmp_path / "state")
    env = {"XDG_CONFIG_HOME": str(own.parents[1]), "THOUGHTGATE_STATE_DIR": state}

    def load(**more: Any) -> Loaded:
        loaded = load_configuration(None, env, str(tmp_path))
        return keep_accepted(loaded, env, state, list[str]().append, **more)

    trust_file(state, str(path), config_digest(str(path), env), "now")
    assert load().policy.default == "deny"
    path.unlink()
    if change != "remove":
        name = path if change == "edit" else path.with_suffix(".toml")
        name.write_text(FORWARD if change == "edit" else 'schema = 1\ndefault = "forward"\n')

    with pytest.raises(ConfigError, match="was changed or removed after you trusted it"):
        load()
    assert load(is_started_by_agent=lambda _: False).policy.default == "forward"
    distrust_file(state, str(path))
    assert load().policy.default == "forward"


def test_a_tightened_file_is_accepted_and_later_compared_with(start: Start) -> None:
    start.load(FORWARD)

    assert start.load(DENY).proposed is None
    assert start.accepted_text() == DENY
    assert start.load(FORWARD).proposed is not None


@pytest.mark.promise("no-loosening-restart")
def test_an_agent_accepts_nothing_by_starting_a_gate_with_variables_of_its_own(
    start: Start,
) -> None:
    start.load(DENY)

    chosen = {"THOUGHTGATE_ACTIVE": "1", "WHAT": "deny"}
    loaded = start.load('schema: 1\ndefault: "${WHAT:-forward}"\n', chosen)

    assert loaded.policy.default == "deny"
    assert start.accepted_text() == DENY


@pytest.mark.promise("no-loosening-restart")
def test_a_file_that_says_development_now_waits(start: Start) -> None:
    start.load(DENY)

    loaded = start.load(f"{DENY}profile: development\n")

    assert loaded.policy.profile == "production"
    assert loaded.proposed is not None


def test_what_only_observes_accepts_nothing_that_is_enforced_later(start: Start) -> None:
    start.load(DENY)

    loaded = start.load(FORWARD, profile="development")

    assert loaded.proposed is None
    assert start.accepted_text() == DENY


def test_reload_auto_in_the_accepted_file_accepts(start: Start) -> None:
    start.load(f"{DENY}reload: auto\n")

    assert start.load(FORWARD).proposed is None
    assert start.accepted_text() == FORWARD


@pytest.mark.promise("no-loosening-restart")
def test_a_changed_cedar_file_waits(start: Start, tmp_path: Path) -> None:
    cedar = tmp_path / "p.cedar"
    text = "schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n"
    cedar.write_text("forbid(principal, action, resource);", "utf-8")
    start.load(text)
    cedar.write_text("permit(principal, action, resource);", "utf-8")

    loaded = start.load(text)

    assert loaded.proposed is not None
    assert "forbid" in loaded.settings.cedar[0].text


def test_an_accepted_file_that_cannot_be_loaded_any_more_stops_the_start(start: Start) -> None:
    kept = f"{DENY}servers: {{a: {{command: '${{RUN}}'}}}}\n"
    start.load(kept, {"RUN": "run"})

    with pytest.raises(ConfigError, match="thoughtgate policy accept"):
        start.load(FORWARD)


def test_an_operator_accepts_by_starting(start: Start) -> None:
    start.load(DENY, is_started_by_agent=lambda _: False)
    assert start.accepted() is None

    start.load(DENY, is_started_by_agent=lambda _: True)
    loaded = start.load(FORWARD, is_started_by_agent=lambda _: False)

    assert loaded.proposed is None
    assert start.accepted_text() == DENY


@pytest.mark.promise("no-loosening-restart")
def test_the_changed_file_cannot_say_that_an_operator_started_the_gate(start: Start) -> None:
    def is_stdio(settings: Any) -> bool:
        return bool(settings.listen.transport == "stdio")

    start.load(DENY, is_started_by_agent=is_stdio)

    loaded = start.load(f"{FORWARD}listen: {{transport: http}}\n", is_started_by_agent=is_stdio)

    assert loaded.proposed is not None
    assert loaded.settings.listen.transport == "stdio"


@pytest.mark.promise("no-loosening-restart")
def test_a_shim_that_starts_again_asks_before_it_forwards_more(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, DENY) as peer:
        peer.send(initialize(0))
        peer.receive_answer(0)
    with ShimPeer(tmp_path, ALLOW_ALL) as peer:
        peer.send(initialize(0))
        peer.receive_answer(0)
        assert "until it is accepted" in peer.stderr
        peer.send(call(1, "echo", {"text": "x"}))
        assert peer.receive_answer(1)["error"]["data"]["kind"] == "governance_denied"
        question = decide_change(tmp_path / "state")
        assert "default: deny -> forward" in json.loads(question.arguments)["loosens"]
        idents = iter(range(2, 1000))

        def is_forwarded() -> bool:
            ident = next(idents)
            peer.send(call(ident, "echo", {"text": "x"}))
            return "result" in peer.receive_answer(ident)

        wait_for(is_forwarded, what="the accepted policy")
        outcomes = [one["policy"]["outcome"] for one in peer.events("policy_changed")]
    assert outcomes[-2:] == ["held", "accepted"]


@pytest.mark.promise("no-loosening-restart")
def test_serve_on_stdio_starts_with_the_servers_that_were_accepted(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo")}) as hub:
        hub.open()
    with serving(tmp_path, {"two": sample("--tools", "echo")}) as hub:
        hub.open()
        assert hub.names(1) == ["one.echo"]
        decide_change(hub.state)
        idents = iter(range(2, 1000))
        wait_for(lambda: hub.names(next(idents)) == ["two.echo"], what="the accepted servers")
        assert policy_questions(hub.state) == []
