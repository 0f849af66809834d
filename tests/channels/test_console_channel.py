import os
import pwd

import pytest

from thoughtgate.channels.console_channel import identity


def test_a_person_is_the_login_of_this_process_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "mallory")

    assert identity() == f"console:{pwd.getpwuid(os.getuid()).pw_name}"


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)

    assert identity() == "console:uid-4000000001"
