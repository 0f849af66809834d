"""The ``facts`` command."""

import json
import re
import time
from contextlib import closing
from pathlib import Path

from tests.cli.orders.test_stop import run

from thoughtgate.policy.facts import PRIVATE, UNTRUSTED
from thoughtgate.stores.facts import FactStore
from thoughtgate.stores.open_database import open_database


def establish(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "state")) as database:
        FactStore(database).establish(
            "ann", [UNTRUSTED, PRIVATE], time.time(), window_s=600, cause="web"
        )


def test_facts_are_listed_and_cleared(tmp_path: Path) -> None:
    assert "No facts" in run(tmp_path, "facts", "list").stderr
    establish(tmp_path)
    text = run(tmp_path, "facts", "list").stdout
    assert re.search(r"^ann +untrusted +\S+Z  web$", text, re.MULTILINE)
    assert "fact untrusted of ann" in run(tmp_path, "status").stdout
    assert run(tmp_path, "facts", "clear", "ann", "--fact", "untrusted").returncode == 0
    (left,) = json.loads(run(tmp_path, "facts", "list", "--json").stdout)
    assert left["fact"] == PRIVATE
    assert "Cleared 1 fact" in run(tmp_path, "facts", "clear", "ann").stdout
    assert run(tmp_path, "facts", "clear", "ann").returncode == 2
    assert run(tmp_path, "facts", "clear", "ann", "--fact", "outbound").returncode == 2
