"""The file with the URLs of remote servers, found by its path."""

from pathlib import Path

from thoughtgate.wrap.remotes_file import is_remotes_file, remotes_path


def test_only_a_file_in_the_state_directory_is_one_of_a_wrap() -> None:
    assert is_remotes_file("/state/remotes/k.json", "/state")
    for path, state in (("/clone/k.json", "/state"), ("/remotes/k.json", ""), ("", "/state")):
        assert not is_remotes_file(path, state)


def test_the_file_of_a_run_is_found_as_one() -> None:
    path = remotes_path("k", {"THOUGHTGATE_STATE_DIR": "/state"})
    assert path == Path("/state/remotes/k.json")
    assert is_remotes_file(str(path), "/state")
