"""The settings of the HTTP side: defaults, and what the file may say."""

from thoughtgate.config.listen_settings import DEFAULT_KEYS, DEFAULT_LISTEN
from thoughtgate.config.read_keys import read_settings


def test_a_gate_stops_without_delay_and_makes_its_own_key_unless_told_otherwise() -> None:
    assert DEFAULT_LISTEN.lame_duck_s == 0
    assert DEFAULT_KEYS.file == ""


def test_the_keys_of_a_cluster_are_read() -> None:
    read = read_settings(
        {
            "schema": 1,
            "default": "deny",
            "listen": {"lame_duck": "5s"},
            "keys": {"file": "/run/secrets/session-keys"},
        }
    )
    assert read.settings is not None, read.problems
    assert read.settings.listen.lame_duck_s == 5.0
    assert read.settings.keys.file == "/run/secrets/session-keys"


def test_a_key_itself_is_not_accepted_in_the_config() -> None:
    read = read_settings({"schema": 1, "default": "deny", "keys": ["0f" * 32]})
    assert read.settings is None
    assert [path for path, _ in read.problems] == [("keys",)]
