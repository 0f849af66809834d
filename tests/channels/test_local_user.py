import os
import pwd

import pytest

from thoughtgate.channels.local_user import login_name


def test_the_name_comes_from_the_user_id_and_not_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")

    assert login_name() == pwd.getpwuid(os.getuid()).pw_name


def test_a_user_without_a_name_is_identified_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)

    assert login_name() == "uid-4000000001"
