"""The table of agents."""

from tests.support.commands import ROOT

from thoughtgate.agents.catalog import AGENTS


def test_the_table_lists_every_agent_by_its_type() -> None:
    assert all(agent.type == name for name, agent in AGENTS.items())


def test_only_codex_opencode_and_kilo_join_entries_key_by_key() -> None:
    assert {agent.type for agent in AGENTS.values() if agent.merge == "keys"} == {
        "codex",
        "kilo",
        "opencode",
    }


def test_the_guide_lists_every_agent_with_its_commands() -> None:
    guide = (ROOT / "docs" / "guides" / "wrap.md").read_text("utf-8")
    for agent in AGENTS.values():
        if agent.type == "custom":
            continue
        row = f"| {agent.name} | `{agent.commands[0]}`"
        assert [one for one in guide.splitlines() if one.startswith(row)], row
