"""Every recipe of the cookbook decides what its page says, through ``policy test``."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.doc_blocks import write_files
from tests.support.warm_command import run_warm
from tools.docs import ROOT

RECIPES: Final = sorted(
    page for page in (ROOT / "docs" / "cookbook").glob("*.md") if page.name != "README.md"
)
MIN_RECIPES: Final = 12


def _policy(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "THOUGHTGATE_STATE_DIR": str(folder)}
    return run_warm("policy", *words, "-c", "thoughtgate.yaml", "--json", env=env, cwd=folder)


def test_there_are_recipes_enough() -> None:
    assert len(RECIPES) >= MIN_RECIPES


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_decides_what_its_page_says(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)

    done = _policy(tmp_path, "test", "expectations.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_has_no_rule_that_lint_complains_about(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)

    found: list[dict[str, Any]] = json.loads(_policy(tmp_path, "lint").stdout)

    assert found == []
