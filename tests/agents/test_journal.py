"""The crash journal."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from thoughtgate.agents.entry_changes import EntryChange, EntryRecord
from thoughtgate.agents.journal import (
    FileRecord,
    Journal,
    find_journals,
    journal_path,
    load_journal,
    remove_journal,
    save_journal,
)
from thoughtgate.errors import ConfigError, UsageError


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    changes = (
        EntryChange("replace", ("command",), "tg", old='"npx"'),
        EntryChange("prepend", ("args",), ["shim", "--"]),
        EntryChange("remove", ("url",), old='"https://r"', after="type"),
    )
    entry = EntryRecord(("mcpServers", "a\ud800"), "a\ud800", ("tg", "shim", "--"), changes)
    record = FileRecord(
        Path("c\udcff.json"), Path("/c.json"), Path("/c.b"), "json", "0", "1", True, (entry,)
    )
    path = journal_path(tmp_path / "state", "run1")
    return Journal("run1", "codex", 7, "2026-01-01T00:00:00Z", (record,), path)


def test_a_journal_comes_back_as_it_was_saved(journal: Journal) -> None:
    save_journal(journal)
    assert load_journal(journal.file) == journal
    toml = replace(journal, files=(replace(journal.files[0], format="toml"),))
    save_journal(toml)
    assert load_journal(journal.file) == toml


def test_a_journal_is_for_its_owner_alone(journal: Journal) -> None:
    save_journal(journal)
    assert journal.file.stat().st_mode & 0o777 == 0o600
    assert journal.file.parent.stat().st_mode & 0o777 == 0o700


def test_journals_are_found_until_they_are_removed(journal: Journal, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert find_journals(state) == ((), ())
    save_journal(journal)
    assert find_journals(state) == ((journal,), ())
    remove_journal(journal)
    remove_journal(journal)
    assert find_journals(state) == ((), ())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2}', "\x00"])
def test_a_file_that_is_no_journal_is_a_problem_and_no_crash(
    journal: Journal, tmp_path: Path, text: str
) -> None:
    save_journal(journal)
    other = journal.file.with_name("other.json")
    other.write_text(text)
    journals, problems = find_journals(tmp_path / "state")
    assert journals == (journal,)
    assert [problem.file for problem in problems] == [str(other)]
    with pytest.raises(ConfigError):
        load_journal(other)


def test_a_journal_that_vanishes_while_it_is_looked_for_is_no_problem(
    journal: Journal, tmp_path: Path
) -> None:
    save_journal(journal)
    dangling = journal.file.with_name("gone.json")
    dangling.symlink_to(tmp_path / "nowhere")
    assert find_journals(tmp_path / "state") == ((journal,), ())


@pytest.mark.parametrize("key", ["", "../x", "a/b", ".hidden", "x" * 65, "a\n"])
def test_a_key_that_is_no_file_name_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="not a valid run name"):
        journal_path(tmp_path, key)


def test_a_pipe_in_the_place_of_a_journal_is_named_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "wraps").mkdir()
    os.mkfifo(tmp_path / "wraps" / "k.json")

    journals, [problem] = find_journals(tmp_path)

    assert journals == ()
    assert "cannot be read as a journal" in problem.message


@pytest.mark.promise("config-restored")
def test_a_journal_of_another_user_is_not_obeyed(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_journal(journal)
    monkeypatch.setattr(os, "geteuid", lambda: journal.file.stat().st_uid + 1)

    found, (problem,) = find_journals(tmp_path / "state")

    assert found == ()
    assert "belongs to another user" in problem.message
