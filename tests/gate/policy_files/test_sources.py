"""Which policy files are found, and how they are described."""

from pathlib import Path

import pytest

from thoughtgate.config.locate import Named
from thoughtgate.errors import ConfigError
from thoughtgate.gate.policy_files import sources
from thoughtgate.gate.policy_files.sources import (
    ORGANISATION,
    PROJECT,
    STARTER,
    USER,
    Places,
    PolicySource,
    describe_sources,
    find_places,
)


def write(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sources, "SYSTEM_DIRECTORY", str(tmp_path / "etc"))
    return write(tmp_path / "etc" / "thoughtgate.yaml")


def test_files_are_found_by_whose_they_are(etc: str, tmp_path: Path) -> None:
    user = write(tmp_path / "config" / "thoughtgate" / "thoughtgate.toml")
    project = write(tmp_path / "work" / "thoughtgate.yaml")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    work = str(tmp_path / "work")
    assert find_places(None, environ, work) == Places(None, user, project, etc)
    assert find_places(None, {}, work, str(tmp_path / "config")).user == user
    assert find_places(None, environ, work, str(tmp_path / "elsewhere")).user == ""


def test_a_named_file_replaces_user_and_project_but_not_the_organisation(
    etc: str, tmp_path: Path
) -> None:
    project = write(tmp_path / "thoughtgate.yaml")
    named = write(tmp_path / "named.yaml")
    found = find_places("named.yaml", {}, str(tmp_path))
    assert found == Places(Named(named, "-c"), "", "", etc)
    assert find_places(None, {"THOUGHTGATE_CONFIG": project}, "/").named == (
        project,
        "THOUGHTGATE_CONFIG",
    )
    assert find_places(etc, {}, "/") == Places(Named(etc, "-c"), "", "", "")


def test_the_user_s_own_file_is_no_project(etc: str, tmp_path: Path) -> None:
    user = write(tmp_path / "thoughtgate" / "thoughtgate.yaml")
    found = find_places(None, {}, str(tmp_path / "thoughtgate"), str(tmp_path))
    assert (found.user, found.project) == (user, "")
    found = find_places(None, {}, str(Path(etc).parent), str(tmp_path / "none"))
    assert (found.project, found.organisation) == ("", etc)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="named by THOUGHTGATE_CONFIG, but there is no such"):
        find_places(None, {"THOUGHTGATE_CONFIG": "gone.yaml"}, str(tmp_path))
    with pytest.raises(ConfigError, match=r"gone\.yaml: there is no such file"):
        find_places("gone.yaml", {}, str(tmp_path))


def test_one_line_says_which_files_are_in_force_and_why() -> None:
    found = (
        PolicySource(USER, "/u.yaml"),
        PolicySource(PROJECT, "/p.yaml", trusted=False),
        PolicySource(ORGANISATION, "/o.yaml"),
    )
    assert describe_sources(found) == (
        "/u.yaml (yours) + /p.yaml (project, not trusted: only tightens; thoughtgate trust)"
        " + /o.yaml (organisation)"
    )
    assert PolicySource(USER, "/u.yaml", named_by="-c").words == "/u.yaml (-c)"
    assert PolicySource(PROJECT, "/p.yaml").words == "/p.yaml (project, trusted)"
    assert PolicySource(STARTER).words == "built-in starter policy"


def test_a_source_is_told_to_commands_and_to_the_record() -> None:
    source = PolicySource(PROJECT, "/p.yaml", "abc", trusted=False, ignored=("audit",))
    assert source.as_json() == {
        "path": "/p.yaml",
        "role": "project",
        "trusted": False,
        "digest": "abc",
        "ignored": ["audit"],
    }
    assert source.as_recorded() == {"role": "project", "path": "/p.yaml", "digest": "abc"}
    assert PolicySource(STARTER).as_recorded() == {"role": "starter"}


@pytest.mark.promise("project-policy-trust")
@pytest.mark.parametrize("name", ["thoughtgate.yaml", "thoughtgate.toml", "thoughtgate.jsonc"])
def test_a_second_file_does_not_put_the_first_out_of_force(
    etc: str, tmp_path: Path, name: str
) -> None:
    write(tmp_path / "thoughtgate.yml")
    assert find_places(None, {}, str(tmp_path), etc).project == str(tmp_path / "thoughtgate.yml")
    write(tmp_path / name)
    with pytest.raises(ConfigError, match="is not the only config file in this directory"):
        find_places(None, {}, str(tmp_path), etc)
