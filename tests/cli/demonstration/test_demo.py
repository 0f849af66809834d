"""``thoughtgate demo`` as a user runs it: without a terminal, nobody answering anything."""

import json
import subprocess
from pathlib import Path

from tests.support.commands import thoughtgate

from thoughtgate.cli.demonstration.demo import _as_json
from thoughtgate.cli.demonstration.demo_run import DemoResult, Row


def _run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        thoughtgate("demo", *args),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_shows_a_table_the_record_and_its_check(tmp_path: Path) -> None:
    run = _run("--folder", str(tmp_path))

    assert run.returncode == 0, run.stderr
    for word in ("forwarded", "hidden", "denied", "limited", "held, approved", "held, denied"):
        assert word in run.stdout
    assert str(tmp_path / "record.jsonl") in run.stdout
    assert "sound" in run.stdout


def test_it_prints_the_same_as_json() -> None:
    row = Row("env()", "hidden", "visibility", "-32015", "hidden")
    result = DemoResult((row,), Path("record.jsonl"), Path("c.yaml"), 7, True, "sound")

    printed = json.loads(json.dumps(_as_json(result)))

    assert printed["as_expected"] is True
    assert printed["calls"][0]["outcome"] == "hidden"
    assert (printed["record"], printed["reached_the_server"]) == ("record.jsonl", 7)
