"""Where a config file is looked for."""

from thoughtgate.config.locate import FILE_NAMES, Candidate, candidate_paths


def test_a_flag_is_the_only_place_and_relative_to_the_working_directory() -> None:
    env = {"THOUGHTGATE_CONFIG": "/other.yaml"}
    assert candidate_paths("a.yaml", env, "/work", "/home/x/.config") == [
        Candidate("/work/a.yaml", "-c")
    ]


def test_the_variable_is_the_only_place_without_a_flag() -> None:
    found = candidate_paths(None, {"THOUGHTGATE_CONFIG": "/a.toml"}, "/work", "/c")
    assert found == [Candidate("/a.toml", "THOUGHTGATE_CONFIG")]


def test_otherwise_working_user_and_system_directory_are_looked_at_in_this_order() -> None:
    found = candidate_paths(None, {}, "/work", "/home/x/.config")
    assert [one.path for one in found[:: len(FILE_NAMES)]] == [
        "/work/thoughtgate.yaml",
        "/home/x/.config/thoughtgate/thoughtgate.yaml",
        "/etc/thoughtgate/thoughtgate.yaml",
    ]
    assert not any(one.required_by for one in found)
