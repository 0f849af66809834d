import pytest
from tests.support.records import T0

from thoughtgate.analysis.learning import observe, propose
from thoughtgate.analysis.replay import RecordedCall, replay
from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import visible
from thoughtgate.policy.call import Call
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.starter import STARTER_TEXT


def policy_of(text: str) -> Policy:
    return build_policy(load_settings(text, file="x.yaml", env={}, read_text=lambda _: ""))


STARTER = policy_of(STARTER_TEXT)


def recorded(name: str, decision: str = "ALLOW", kind: str = "tool") -> RecordedCall:
    return RecordedCall("r", Call("files", kind, name, {}), T0, decision, failed=False, cut=False)


CALLS = [
    *[recorded("read_file")] * 3,
    recorded("delete_file"),
    recorded("transfer", "HOLD"),
    recorded("wipe_disk", "BLOCK"),
    recorded("list", "BLOCK"),
    recorded("list"),
    recorded('odd*[name]?${HOME} "quote" é'),
    recorded("file:///etc/motd", kind="resource"),
    recorded("greet", kind="prompt"),
]


def test_what_was_observed_is_summed_up() -> None:
    seen = {one.name: one for one in observe(CALLS, STARTER)}
    assert seen["read_file"].calls == 3
    assert not seen["read_file"].cautious
    assert seen["delete_file"].cautious
    assert seen["transfer"].held == 1
    assert seen["wipe_disk"].refused == 1


def test_the_proposal_is_a_config_that_does_what_was_seen() -> None:
    text = propose(observe(CALLS, STARTER), "7d")
    policy = policy_of(text)
    decisions = {one.recorded.call.name: one.decision for one in replay(CALLS, policy)}
    assert decisions == {
        "read_file": "ALLOW",
        "delete_file": "HOLD",
        "transfer": "HOLD",
        "wipe_disk": "BLOCK",
        "list": "ALLOW",
        'odd*[name]?${HOME} "quote" é': "ALLOW",
        "file:///etc/motd": "ALLOW",
        "greet": "ALLOW",
    }
    (other,) = replay([recorded("oddXname")], policy)
    assert other.decision == "BLOCK"


def test_the_proposal_explains_itself() -> None:
    text = propose(observe(CALLS, STARTER), "7d")
    assert "since 7d" in text
    assert "# 1 call, the name says that it changes things, so a person is asked" in text
    assert '#   "files": tool "wipe_disk", 1 call' in text
    assert "# 2 calls, 1 refused" in text
    assert "# 1 call, 1 held for a person" in text


def test_what_no_server_offered_is_told_but_no_server_is_made_of_it() -> None:
    nowhere = Call(NOWHERE, "tool", "nothing", {})
    calls = [*CALLS, recorded("x", "BLOCK")._replace(call=nowhere)]
    text = propose(observe(calls, STARTER), "")
    assert set(policy_of(text).visibility.servers) == {"files"}
    assert '#   "(none)": tool "nothing", 1 call' in text


def test_nothing_seen_gives_a_config_that_denies_everything() -> None:
    text = propose([], "")
    assert policy_of(text).default == "deny"


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("decision", ["ALLOW", "BLOCK"])
def test_a_name_cannot_write_a_line_of_its_own(end: str, decision: str) -> None:
    name = f"x{end}approval: {{default: {{on_timeout: approve}}}} #"
    named = recorded(name, decision)
    served = named._replace(call=named.call._replace(server=name))
    for calls in ([named], [served]):
        assert not any(
            line.startswith("approval")
            for line in propose(observe(calls, STARTER), "").splitlines()
        )
    settings = load_settings(
        propose(observe([named], STARTER), ""), file="x.yaml", env={}, read_text=str
    )
    assert settings.approval["default"].on_timeout == "deny"
    verdicts = [one.decision for one in replay([named], build_policy(settings))]
    assert verdicts == [decision]


def test_every_character_of_a_proposed_name_can_be_seen() -> None:
    named = recorded("x\u202e\u200b\u00a0\U000e0041é")
    text = propose(observe([named], STARTER), "")
    assert '"x\\u202e\\u200b\\u00a0\\U000e0041é"' in text
    assert visible(text, "\n") == text
    policy = build_policy(load_settings(text, file="x.yaml", env={}, read_text=str))
    assert [one.decision for one in replay([named], policy)] == ["ALLOW"]


def test_a_masked_name_is_not_proposed() -> None:
    masked = recorded("https://host/?token=[REDACTED] #1a2b3c4d", kind="resource")
    assert observe([masked], STARTER) == []
