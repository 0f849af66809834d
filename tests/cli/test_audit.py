from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record


def test_the_command_lists_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    done = command(capsys, "audit", "--help")
    assert done.code == 0
    for name in ("tail", "query", "show", "stats", "verify", "export"):
        assert name in done.out


@pytest.mark.parametrize("name", ["tail", "query", "stats", "verify", "export"])
def test_a_record_that_is_not_there_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    flag = [] if name == "verify" else ["--record"]
    done = command(capsys, "audit", name, *flag, str(tmp_path / "none.jsonl"))
    assert done.code == 2
    assert done.out == ""
    assert "none.jsonl" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["tail", "query", "stats", "export"])
def test_a_foreign_file_is_read_to_its_end_and_its_faults_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = sample_record(tmp_path)
    with path.open("ab") as file:
        file.write(b"\xff\xfe not ours\n[1,2]\n")
    done = command(capsys, "audit", name, "--record", str(path))
    assert done.code == 0
    assert "Traceback" not in done.err
    if name != "tail":
        assert f"{path}:20" in done.err
