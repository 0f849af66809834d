"""Encrypted tokens: what is stored, who may renew them, and what others see."""

import contextlib
import time
from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet

from thoughtgate.errors import StoreError
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.tokens import (
    LEASE_S,
    TokenFacts,
    TokenKey,
    TokenStore,
    lease_owner,
    server_key,
)
from thoughtgate.upstream.oauth.token_keys import cipher_of

KEY = TokenKey("ann", server_key("https://mcp.example/mcp"), "https://issuer.example")
NEW, OLD = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def _facts(expires_at: float = 0.0, *scopes: str) -> TokenFacts:
    return TokenFacts("", "", "search", "", scopes or ("read",), 0.0, expires_at, True, 0)


def _store(location: StoreLocation, keys: str = NEW) -> TokenStore:
    return TokenStore(open_database(location), cipher_of(keys, "the test"))


@pytest.fixture
def stores(location: StoreLocation) -> Iterator[tuple[TokenStore, TokenStore]]:
    """Return the stores of two gates."""
    with contextlib.ExitStack() as stack:
        made = [_store(location) for _ in range(2)]
        for one in made:
            stack.callback(one.close)
        yield made[0], made[1]


def test_a_login_is_found_by_every_gate(stores: tuple[TokenStore, TokenStore]) -> None:
    one, other = stores
    now = time.time()
    before = other.state()
    one.save_login(KEY, b"tokens", _facts(now + 60), now)

    found = other.find(KEY.principal, KEY.server)
    assert found is not None
    assert (found.key, found.body) == (KEY, b"tokens")
    assert found.expires_at == pytest.approx(now + 60, abs=1)
    assert other.find("bob", KEY.server) is None
    assert other.find("ann", server_key("https://other.example/mcp")) is None
    assert other.state() != before or one.state() != before


def test_a_login_replaces_the_one_before_also_at_another_issuer(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    one, other = stores
    now = time.time()
    one.save_login(KEY, b"first", _facts(), now)
    one.want_scopes(KEY.principal, KEY.server, ["write"])
    one.save_login(KEY._replace(issuer="https://new.example"), b"second", _facts(), now)

    (listed,) = other.listed()
    assert listed.issuer == "https://new.example"
    found = other.find(KEY.principal, KEY.server)
    assert found is not None
    assert found.body == b"second"
    assert other.wanted_scopes(KEY.principal, KEY.server) == ()


def test_what_is_listed_needs_no_key(location: StoreLocation) -> None:
    now = time.time()
    with contextlib.closing(_store(location)) as store:
        store.save_login(KEY, b"tokens", _facts(now + 60, "read", "write"), now)
    with contextlib.closing(TokenStore(open_database(location))) as store:
        (facts,) = store.listed()
        assert (facts.principal, facts.name, facts.scopes) == ("ann", "search", ("read", "write"))
        assert facts.signed_in_at == pytest.approx(now, abs=1)
        assert facts.expires_at == pytest.approx(now + 60, abs=1)
        assert facts.is_renewable
        assert store.listed(KEY.server) == [facts]
        assert store.listed("other") == []
        with pytest.raises(StoreError, match="no key"):
            store.find(KEY.principal, KEY.server)
        with pytest.raises(StoreError, match="no key"):
            store.save_login(KEY, b"x", _facts(), now)
        assert store.forget(KEY.principal, KEY.server)


def test_neither_tokens_nor_urls_are_stored_in_the_clear(location: StoreLocation) -> None:
    with contextlib.closing(_store(location)) as store:
        store.save_login(KEY, b"secret-token", _facts(), time.time())
        database = open_database(location)
        with contextlib.closing(database):
            (row,) = database.read("SELECT * FROM oauth_tokens")
    assert b"secret-token" not in repr(row).encode()
    assert "mcp.example" not in repr(row)


def test_keys_can_be_replaced_while_gates_run(location: StoreLocation) -> None:
    with contextlib.closing(_store(location, OLD)) as store:
        store.save_login(KEY, b"tokens", _facts(), time.time())
    with contextlib.closing(_store(location, f"{NEW}, {OLD}")) as store:
        assert store.find(KEY.principal, KEY.server) is not None
    with (
        contextlib.closing(_store(location, NEW)) as store,
        pytest.raises(StoreError, match="different key"),
    ):
        store.find(KEY.principal, KEY.server)


def test_a_row_cannot_be_given_to_another_principal(location: StoreLocation) -> None:
    with contextlib.closing(_store(location)) as store:
        store.save_login(KEY, b"tokens", _facts(), time.time())
        database = open_database(location)
        with contextlib.closing(database), database.write() as transaction:
            transaction.execute("UPDATE oauth_tokens SET principal = 'bob'")
        with pytest.raises(StoreError, match="different key"):
            store.find("bob", KEY.server)


def test_one_holder_renews_and_the_others_see_the_new_row(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    one, other = stores
    now = time.time()
    first, second = lease_owner(1), lease_owner(2)
    one.save_login(KEY, b"old", _facts(), now)
    found = other.find(KEY.principal, KEY.server)
    assert found is not None

    assert one.claim(KEY, found.generation, first, now).is_held
    waiting = other.claim(KEY, found.generation, second, now)
    assert not waiting.is_held
    assert waiting.stored == found
    renewed = one.renew(found, b"new", _facts(now + 60), first)
    assert renewed is not None
    late = other.claim(KEY, found.generation, second, now)
    assert not late.is_held
    assert late.stored is not None
    assert (late.stored.body, late.stored.generation) == (b"new", renewed.generation)
    assert other.claim(KEY, renewed.generation, second, now).is_held


def test_a_lease_ends_when_it_is_released_or_too_old(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    one, other = stores
    now = time.time()
    first, second = lease_owner(1), lease_owner(2)
    one.save_login(KEY, b"old", _facts(), now)
    found = one.find(KEY.principal, KEY.server)
    assert found is not None
    assert one.claim(KEY, found.generation, first, now).is_held
    one.release(found, second)
    assert not other.claim(KEY, found.generation, second, now).is_held
    one.release(found, first)
    assert other.claim(KEY, found.generation, second, now).is_held
    assert one.claim(KEY, found.generation, first, now + LEASE_S + 5).is_held
    assert other.renew(found, b"late", _facts(), second) is None


def test_a_process_that_died_holds_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    dead = lease_owner(1).rpartition("|")[0] + "|1#1"
    now = time.time()
    with contextlib.closing(_store(StoreLocation(tmp_path_factory.mktemp("state")))) as store:
        store.save_login(KEY, b"old", _facts(), now)
        found = store.find(KEY.principal, KEY.server)
        assert found is not None
        assert store.claim(KEY, found.generation, dead, now).is_held
        assert store.claim(KEY, found.generation, lease_owner(2), now).is_held


def test_a_logout_during_a_renewal_wins(stores: tuple[TokenStore, TokenStore]) -> None:
    one, other = stores
    now, owner = time.time(), lease_owner(1)
    one.save_login(KEY, b"old", _facts(), now)
    found = one.find(KEY.principal, KEY.server)
    assert found is not None
    assert one.claim(KEY, found.generation, owner, now).is_held
    assert other.forget(KEY.principal, KEY.server)
    assert one.renew(found, b"new", _facts(), owner) is None
    assert one.claim(KEY, found.generation, owner, now).stored is None
    assert not other.forget(KEY.principal, KEY.server)


def test_only_the_generation_that_was_refused_is_deleted(
    stores: tuple[TokenStore, TokenStore],
) -> None:
    one, _ = stores
    now = time.time()
    one.save_login(KEY, b"old", _facts(), now)
    old = one.find(KEY.principal, KEY.server)
    assert old is not None
    one.save_login(KEY, b"new", _facts(), now)
    assert not one.forget(KEY.principal, KEY.server, old.generation)
    assert one.find(KEY.principal, KEY.server) is not None


def test_the_scopes_that_a_server_asks_for_add_up(stores: tuple[TokenStore, TokenStore]) -> None:
    one, other = stores
    one.want_scopes(KEY.principal, KEY.server, ["write"])
    assert other.wanted_scopes(KEY.principal, KEY.server) == ()
    one.save_login(KEY, b"old", _facts(), time.time())
    one.want_scopes(KEY.principal, KEY.server, ["write"])
    other.want_scopes(KEY.principal, KEY.server, ["admin", "write"])
    assert one.wanted_scopes(KEY.principal, KEY.server) == ("write", "admin")
