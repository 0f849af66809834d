"""What ``login`` and ``logout`` share."""

from pathlib import Path

import pytest
from tests.support.waiting import run_async

from thoughtgate.cli.oauth.access import login_lines, open_access
from thoughtgate.errors import StoreError
from thoughtgate.upstream.oauth.tokens import SignedIn


def signed_in(**changes: object) -> SignedIn:
    return SignedIn(
        "local", "search", "https://as.example", (), 1.0, 0.0, is_renewable=False
    )._replace(
        **changes  # type: ignore[arg-type]
    )


def test_the_text_says_how_long_it_lasts_and_for_whom() -> None:
    assert login_lines(signed_in()) == ("Signed in to search; until the server ends it",)
    assert login_lines(signed_in(expires_at=60.0, principal="ann", scopes=("a", "b"))) == (
        "Signed in to search as ann; until 1970-01-01T00:01:00.000Z, scopes: a b",
    )
    assert login_lines(signed_in(is_renewable=True, expires_at=60.0)) == (
        "Signed in to search; the gate renews it by itself",
    )


def test_a_login_to_an_agents_own_server_is_kept_where_wrap_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path / "state"))
    config = tmp_path / "team.yaml"
    config.write_text(
        "schema: 1\ndefault: deny\nstore: postgresql://gate@127.0.0.1:1/none\n"
        "servers: {far: {url: 'https://far.example/mcp'}}\n",
        "utf-8",
    )

    async def count(name: str) -> int:
        access, _, _ = open_access(str(config), name)
        try:
            return len(await access.signed_in())
        finally:
            await access.close()

    assert run_async(count("https://other.example/mcp")) == 0
    with pytest.raises(StoreError, match=r"127\.0\.0\.1"):
        run_async(count("https://far.example/mcp"))
