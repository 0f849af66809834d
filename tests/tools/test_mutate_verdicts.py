"""The mutations of the verdicts: every one still applies, and the tool tells what survives."""

import ast
from pathlib import Path

import pytest
from tools.mutate_verdicts import (
    MUTATIONS,
    ROOT,
    SOURCE,
    Mutation,
    NotApplicableError,
    is_caught,
    mutate,
)

from tools import mutate_verdicts

_SAMPLE = Mutation("sample.py", "return 1 > 0", "return 1 < 0", ("test_sample.py",))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: f"{one.file}: {one.line}")
def test_a_mutation_applies_to_the_current_source(mutation: Mutation) -> None:
    text = (ROOT / SOURCE / mutation.file).read_text("utf-8")

    mutated = mutate(mutation, text)

    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))
    assert all((ROOT / test).is_file() for test in mutation.tests)


def test_there_are_at_least_fifty_and_no_line_twice() -> None:
    assert len({(one.file, one.line) for one in MUTATIONS}) == len(MUTATIONS) >= 50


@pytest.mark.parametrize("text", ["", "return 1 > 0\nreturn 1 > 0\n", "    return 1 > 0  # why\n"])
def test_a_line_that_is_not_there_exactly_once_is_an_error(text: str) -> None:
    with pytest.raises(NotApplicableError, match=r"sample\.py has [02] lines"):
        mutate(_SAMPLE, text)


def test_a_mutated_line_keeps_its_indentation() -> None:
    assert mutate(_SAMPLE, "def f():\n    return 1 > 0\n") == "def f():\n    return 1 < 0\n"


def _tree(tmp_path: Path, test: str) -> Path:
    source = tmp_path / SOURCE / "sample.py"
    source.parent.mkdir(parents=True)
    source.write_text("def is_more():\n    return 1 > 0\n", "utf-8")
    path = f"import sys\nsys.path.insert(0, {str(source.parent)!r})\nfrom sample import is_more\n"
    (tmp_path / "test_sample.py").write_text(f"{path}def test_it():\n    {test}\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(("test", "caught"), [("assert is_more()", True), ("is_more()", False)])
def test_a_mutation_is_caught_by_a_test_that_fails(test: str, caught: bool, tmp_path: Path) -> None:
    tree = _tree(tmp_path, test)

    assert is_caught(_SAMPLE, tree) is caught
    assert "1 > 0" in (tree / SOURCE / "sample.py").read_text("utf-8"), "it is not restored"


def test_tests_that_cannot_run_catch_nothing(tmp_path: Path) -> None:
    tree = _tree(tmp_path, "pass")

    with pytest.raises(RuntimeError, match=r"could not run absent\.py"):
        is_caught(_SAMPLE._replace(tests=("absent.py",)), tree)


def test_a_mutation_that_survives_is_named_and_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutate_verdicts, "MUTATIONS", (_SAMPLE,))
    monkeypatch.setattr(mutate_verdicts, "copy_tree", lambda target: _tree(target, "is_more()"))

    assert mutate_verdicts.main([]) == 1
    assert "NOT CAUGHT sample.py: return 1 > 0" in capsys.readouterr().out
