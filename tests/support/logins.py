"""Signing in with the real commands: a config with a protected server, a key, and a user who consents."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.authorization_server import AuthorizationServer, Browser, ProtectedServer
from tests.support.commands import thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for

KEY_ENV: Final = "TOKENS_KEY"
"""The variable of the key that encrypts tokens; not one that a gate strips from its environment."""

KEY: Final = "c2VjcmV0LWtleS1vZi10aGUtdGVzdHMtMTIzNDU2Nzg="
"""A valid key of Fernet: 32 bytes."""

_LINK: Final = re.compile(r"http://127\.0\.0\.1:\d+/auth\?\S+")
_CODE: Final = re.compile(r"Open (\S+) on any device and enter the code (\S+)")


class Household:
    """A directory with a config, and the commands of its user."""

    def __init__(
        self,
        directory: Path,
        issuer: AuthorizationServer,
        protected: ProtectedServer,
        *,
        auth: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Write a config in which the server is called ``search``."""
        self.directory = directory
        self.issuer = issuer
        self.protected = protected
        self.state = directory / "state"
        self.config = directory / "gate.json"
        server = {"url": protected.endpoint, **({"auth": dict(auth)} if auth else {})}
        document = {
            "schema": 1,
            "default": "forward",
            "servers": {"search": server},
            "keys": {"tokens_env": KEY_ENV},
            **settings,
        }
        self.config.write_text(json.dumps(document))
        self.env = {
            "HOME": str(directory),
            "THOUGHTGATE_STATE_DIR": str(self.state),
            "BROWSER": "false",
            KEY_ENV: KEY,
        }

    def command(self, *words: str) -> StdioPeer:
        """Start a command of ours."""
        return StdioPeer(thoughtgate(*words), env=self.env, cwd=self.directory)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command with this config to its end."""
        with self.command(*words, "-c", str(self.config)) as peer:
            code = peer.finish()
            out = b"\n".join(peer.remaining_lines()).decode()
            return subprocess.CompletedProcess(words, code, out, peer.stderr)

    def log_in(self, *flags: str, account: str = "alice", server: str = "search") -> dict[str, Any]:
        """Sign in as somebody, as a person with a browser would; return what the command printed."""
        self.issuer.configure(account=account)
        words = ("login", server, "-c", str(self.config), "--no-browser", "--json", *flags)
        with self.command(*words) as peer:
            link = wait_for(lambda: _LINK.search(peer.stderr), what="the link")[0]
            status, page = Browser().log_in(link)
            assert status == 200, page
            code = peer.finish()
            out = b"\n".join(peer.remaining_lines()).decode()
            assert code == 0, peer.stderr
        found: dict[str, Any] = json.loads(out)
        return found

    def log_in_by_device(self, *flags: str) -> dict[str, Any]:
        """Sign in by entering a code."""
        words = ("login", "search", "-c", str(self.config), "--device", "--json", *flags)
        with self.command(*words) as peer:
            found = wait_for(lambda: _CODE.search(peer.stderr), what="the code")
            Browser().enter_code(found[1], found[2])
            assert peer.finish(PATIENCE_S) == 0, peer.stderr
            said: dict[str, Any] = json.loads(b"\n".join(peer.remaining_lines()))
            return said


def find_leaks(secrets: list[str], *places: Path, texts: str = "") -> list[str]:
    """Return where one of the secrets is: in files, texts, or processes' arguments and environments.

    The key of the tokens is in the environment of the gates that need it, and nowhere else.
    """
    needles = [secret.encode() for secret in secrets]
    assert needles
    found = ["text" for needle in needles if needle in texts.encode()]
    for place in places:
        for path in sorted(each for each in place.rglob("*") if each.is_file()):
            content = path.read_bytes()
            found += [str(path) for needle in needles if needle in content]
    for path in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
        try:
            content = path.read_bytes()
        except OSError:  # it has ended
            continue
        wanted = [one for one in needles if path.name == "cmdline" or one != KEY.encode()]
        found += [str(path) for needle in wanted if needle in content]
    return found
