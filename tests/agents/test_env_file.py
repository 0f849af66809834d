"""Files with variables: read where all agents agree, refused where they do not."""

from pathlib import Path

import pytest

from thoughtgate.agents.env_file import MAX_BYTES, read_env_file


def _read(tmp_path: Path, content: str | bytes) -> tuple[dict[str, str], str]:
    path = tmp_path / ".env"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_env_file(path)


def test_lines_that_every_agent_reads_alike_are_read(tmp_path: Path) -> None:
    text = "# c\r\n\r\nA=1\n  export B = two words \nC=\"x # y\"\nD='z'\nE=\nA=2\nF=a=b"
    expected = {"A": "2", "B": "two words", "C": "x # y", "D": "z", "E": "", "F": "a=b"}
    assert _read(tmp_path, text) == (expected, "")


@pytest.mark.parametrize(
    "line",
    ["A", "A: b", "A=b # c", 'A="b', 'A="b\\n"', "A=$B", "A='it`s'", "A B=c", "A=\x0bb", "1A=b"],
)
def test_a_line_that_agents_read_in_several_ways_is_refused(tmp_path: Path, line: str) -> None:
    found, problem = _read(tmp_path, f"OK=1\n{line}\n")
    assert found == {}
    assert problem.startswith("line 2 of ")


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    assert "cannot be read" in read_env_file(tmp_path / "missing")[1]
    assert "cannot be read" in _read(tmp_path, b"A=\xff")[1]
    assert "too long" in _read(tmp_path, "#" * (MAX_BYTES + 1))[1]
