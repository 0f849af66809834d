"""``policy lint`` as a process."""

import json
import subprocess
import sys
from pathlib import Path


def policy(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thoughtgate", "policy", *args, "-c", "thoughtgate.yaml"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, cwd=cwd)


def test_lint_is_content_with_a_sound_config(folder: Path) -> None:
    result = policy("lint", cwd=folder)
    assert (result.returncode, result.stdout) == (0, "")
    assert "0 errors, 0 warnings" in result.stderr


def test_lint_finds_unreachable_rules_and_unlisted_servers_with_lines(folder: Path) -> None:
    config = folder / "thoughtgate.yaml"
    added = "  - {tool: transfer, server: bnak, action: deny}\ncedar:"
    config.write_text(config.read_text().replace("cedar:", added))
    result = policy("lint", "--json", cwd=folder)
    assert result.returncode == 1
    found = [(one["level"], one["key"], one["line"]) for one in json.loads(result.stdout)]
    assert found == [("error", "rules[4]", 11), ("warning", "rules[4].server", 11)]


def test_lint_names_file_and_line_of_cedar_that_does_not_parse(folder: Path) -> None:
    (folder / "p.cedar").write_text(
        "permit(principal, action, resource);\npermit(principal action, resource);\n"
    )
    result = policy("lint", cwd=folder)
    assert result.returncode == 1
    assert "error: p.cedar:2:" in result.stdout


def test_lint_lists_what_a_broken_config_has_wrong(folder: Path) -> None:
    (folder / "thoughtgate.yaml").write_text(
        "schema: 1\ndefault: deny\nrules: [{action: approve, approval: x}]\n"
    )
    result = policy("lint", cwd=folder)
    assert result.returncode == 1
    assert "rules[0].approval" in result.stdout
