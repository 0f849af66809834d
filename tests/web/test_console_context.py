"""What all pages share."""

import pytest
from tests.support.consoles import Client, LocalConsole
from tests.web.conftest import Gate

from thoughtgate import __version__
from thoughtgate.channels.console_channel import identity
from thoughtgate.web.console_context import PAGES


@pytest.mark.parametrize("address", [address for address, _ in PAGES])
def test_every_page_leads_to_every_other_and_says_who_one_is(client: Client, address: str) -> None:
    text = client.get(address).text

    for other, name in PAGES:
        assert f'href="{other}"' in text
        assert name in text
    assert f'<a href="{address}" aria-current="page">' in text
    assert identity() in text
    assert __version__ in text


def test_every_page_counts_what_waits(client: Client, gate: Gate) -> None:
    gate.hold()
    gate.hold()

    assert "(2) Traffic" in client.get("/traffic").text


def test_a_store_that_cannot_be_read_is_said_so(console: LocalConsole, client: Client) -> None:
    console.console.context.approvals.close()
    answer = client.get("/people")

    assert answer.status == 503
    assert "Temporarily unavailable" in answer.text
