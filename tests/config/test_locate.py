"""Where config files are looked for."""

from thoughtgate.config.locate import FILE_NAMES, Named, candidates, named_file


def test_a_flag_names_the_file_relative_to_the_working_directory() -> None:
    env = {"THOUGHTGATE_CONFIG": "/other.yaml"}
    assert named_file("a.yaml", env, "/work") == Named("/work/a.yaml", "-c")


def test_the_variable_names_the_file_without_a_flag() -> None:
    env = {"THOUGHTGATE_CONFIG": "/a.toml"}
    assert named_file(None, env, "/work") == Named("/a.toml", "THOUGHTGATE_CONFIG")
    assert named_file(None, {}, "/work") is None


def test_a_directory_is_searched_for_every_name_in_order() -> None:
    assert candidates("/work") == [f"/work/{name}" for name in FILE_NAMES]
