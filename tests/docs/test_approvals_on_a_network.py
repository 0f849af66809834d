"""The configs of the guide to sign-in on a network are valid, and say what the guide says."""

from pathlib import Path
from typing import Final

import pytest
from tests.support.doc_blocks import write_files
from tools.docs import ROOT

from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import Settings
from thoughtgate.front.authentication import KEYS_RETRY_S
from thoughtgate.web.console_server import MAX_REPORTS
from thoughtgate.web.sign_in.proxy_sign_in import MAX_GROUPS, open_sign_in

GUIDE: Final = ROOT / "docs" / "guides" / "approvals-on-a-network.md"


def _settings(name: str, folder: Path) -> Settings:
    write_files(GUIDE, folder)
    text = (folder / name).read_text("utf-8")
    return load_settings(text, file=name, env={}, read_text=lambda _: "")


@pytest.mark.parametrize(
    ("name", "peer", "may_connect"),
    [
        ("thoughtgate.yaml", "127.0.0.1", True),
        ("thoughtgate.yaml", "10.20.0.7", False),
        ("own-host.yaml", "10.20.0.7", True),
        ("own-host.yaml", "10.30.0.7", False),
        ("own-host.yaml", "127.0.0.1", False),
        ("own-tls.yaml", "203.0.113.9", True),
        ("iap.yaml", "35.191.4.4", True),
        ("iap.yaml", "203.0.113.9", False),
    ],
)
def test_a_config_of_the_guide_admits_whom_it_says(
    tmp_path: Path, name: str, peer: str, *, may_connect: bool
) -> None:
    sign_in = open_sign_in(_settings(name, tmp_path).console)
    assert sign_in is not None
    assert sign_in.admits(peer) is may_connect


def test_the_guide_gives_the_right_numbers() -> None:
    text = GUIDE.read_text("utf-8")
    assert f"more than {MAX_GROUPS} groups" in text
    assert f"at most {MAX_REPORTS} times per minute" in text
    assert KEYS_RETRY_S == 10
    assert "at most every ten seconds" in text
