"""The difference between two configs, for people and for the decision who must accept it."""

from pathlib import Path
from typing import Any

import pytest

from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.policy_files.policy_change import MAX_LISTED, Change, find_change

DENY = "schema: 1\ndefault: deny\n"
FORWARD = "schema: 1\ndefault: forward\n"
SERVERS = "servers: {a: {command: run, env: {API_TOKEN: hunter2hunter2}}}\n"


def load(path: Path, text: str, **environ: str) -> Loaded:
    path.write_text(text, "utf-8")
    return load_configuration(str(path), environ, str(path.parent))


def change(tmp_path: Path, old: str, new: str, **more: Any) -> Change:
    path = tmp_path / "thoughtgate.yaml"
    return find_change(load(path, old), load(path, new), {}, 0.0, **more)


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        (DENY, FORWARD, "loosens"),
        (FORWARD, DENY, "tightens"),
        (DENY, f"{DENY}# a comment\n", "none"),
        (DENY, f"{DENY}tasks: {{ttl: 1m}}\n", "changes"),
        (FORWARD, f"{DENY}tasks: {{ttl: 1m}}\n", "tightens"),
        (DENY, f"{DENY}servers: {{a: {{command: run}}}}\n", "cannot_be_told"),
        (DENY, f"{FORWARD}limits: [{{rate: 1/m}}]\n", "loosens"),
        (f"{DENY}limits: [{{rate: 1/m}}]\n", DENY, "loosens"),
        (DENY, f"{DENY}profile: development\n", "loosens"),
        (f"{DENY}profile: development\n", DENY, "tightens"),
        (DENY, f"{DENY}approval: {{default: {{on_timeout: approve}}}}\n", "loosens"),
        (f"{DENY}approval: {{default: {{approvers: [ann]}}}}\n", DENY, "loosens"),
    ],
)
def test_the_worst_effect_counts(tmp_path: Path, old: str, new: str, effect: str) -> None:
    found = change(tmp_path, old, new)

    assert found.effect == effect
    assert found.needs_acceptance == (effect in {"loosens", "cannot_be_told"})


def test_the_profile_in_the_file_counts_although_a_run_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "thoughtgate.yaml"
    path.write_text(DENY, "utf-8")
    old = load_configuration(str(path), {}, str(tmp_path), profile="production")
    path.write_text(f"{DENY}profile: development\n", "utf-8")
    new = load_configuration(str(path), {}, str(tmp_path), profile="production")

    found = find_change(old, new, {}, 0.0)

    assert (found.effect, found.after_restart) == ("loosens", ("profile",))
    assert not found.applies


def test_the_text_of_every_changed_file_is_shown(tmp_path: Path) -> None:
    found = change(tmp_path, DENY, FORWARD)

    assert found.is_whole
    assert {"-default: deny", "+default: forward"} <= set(found.shown["files"])
    assert "default: deny -> forward" in found.shown["loosens"]


def test_secrets_are_masked_in_the_difference(tmp_path: Path) -> None:
    found = change(tmp_path, DENY, DENY + SERVERS)

    assert "hunter2" not in str(found.shown)
    assert any("API_TOKEN" in line for line in found.shown["files"])


@pytest.mark.promise("no-blinding-reload")
def test_the_new_masking_does_not_hide_the_difference(tmp_path: Path) -> None:
    found = change(tmp_path, DENY, f'{FORWARD}redact: {{patterns: [".+"], names: [default]}}\n')

    assert "default: deny -> forward" in found.shown["loosens"]


@pytest.mark.parametrize("filler", ["# filler\n" * 6000, f"# {'x' * 70_000}\n"])
def test_a_difference_too_long_to_show_is_not_shown_in_part(tmp_path: Path, filler: str) -> None:
    found = change(tmp_path, DENY, FORWARD + filler)

    assert not found.is_whole
    assert "files" not in found.shown
    assert found.shown["loosens"]


def test_many_effects_are_counted_instead_of_listed(tmp_path: Path) -> None:
    names = ", ".join(f"tool_{number}" for number in range(MAX_LISTED + 50))
    rules = f"rules: [{{tool: [{names}], action: deny}}]\n"

    found = change(tmp_path, FORWARD + rules, FORWARD)

    assert len(found.shown["loosens"]) == MAX_LISTED + 1
    assert found.shown["loosens"][-1].startswith("and ")


def test_the_digest_depends_on_the_new_texts_of_what_changed(tmp_path: Path) -> None:
    one = change(tmp_path, DENY, FORWARD)
    other = change(tmp_path, f"{DENY}# other\n", FORWARD)

    assert one.digest == other.digest
    assert one.digest != change(tmp_path, FORWARD, DENY).digest


@pytest.mark.parametrize(
    ("new", "late"),
    [
        ("listen: {port: 9000}", "listen.port"),
        ("audit: {on_failure: continue}", "audit.on_failure"),
        ("telemetry: {log_level: debug}", "telemetry.log_level"),
        ("console: {enabled: false}", "console.enabled"),
        ("servers: {a: {command: run}}", "servers.a"),
        ("holds: 3", "holds.connection"),
        ("approval: {default: {channel: terminal}}", "approval.default.channel"),
    ],
)
def test_what_is_read_at_the_start_applies_after_a_restart(
    tmp_path: Path, new: str, late: str
) -> None:
    found = change(tmp_path, DENY, f"{DENY}{new}\n")

    assert late in found.after_restart
    assert late in found.shown["applies_after_restart"]


def test_what_a_product_applies_itself_needs_no_restart(tmp_path: Path) -> None:
    new = f"{DENY}servers: {{a: {{command: run}}}}\n"

    assert change(tmp_path, DENY, new, applied=("servers.*",)).after_restart == ()


def test_what_a_server_shows_applies_at_once(tmp_path: Path) -> None:
    old = f"{DENY}servers: {{a: {{command: run}}}}\n"
    new = f"{DENY}servers: {{a: {{command: run, enabled: false}}}}\n"

    found = change(tmp_path, old, new)

    assert (found.after_restart, found.applies) == ((), True)
