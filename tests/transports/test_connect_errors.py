"""What goes wrong while a connection is made has a name of its own."""

import asyncio
import errno
import socket
import ssl
from pathlib import Path

import pytest
from tests.support.certificates import write_certificate
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError
from thoughtgate.transports.connect_errors import connect_error, lost_error, tls_error
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.tls import client_context, server_context


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "connection_refused"),
        (TimeoutError(), "connect_timeout"),
        (OSError(errno.ETIMEDOUT, "x"), "connect_timeout"),
        (socket.gaierror(socket.EAI_NONAME, "x"), "dns_failed"),
        (UnicodeError("label too long"), "dns_failed"),
        (OSError(errno.ENETUNREACH, "x"), "network_unreachable"),
        (OSError(errno.EHOSTUNREACH, "x"), "network_unreachable"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "connection_lost"),
        (
            OSError("Multiple exceptions: [Errno 101] no route ('::1'), [Errno 111] refused"),
            "connection_refused",
        ),
        (OSError("something else"), "connection_failed"),
        (ssl.SSLError(1, "x"), "tls_failed"),
    ],
)
def test_an_exception_of_a_connection_has_a_cause(raised: Exception, cause: str) -> None:
    error = connect_error(raised)
    assert error.cause == cause
    assert str(error) != "x"


def test_a_connection_that_ends_is_lost() -> None:
    assert lost_error(None).cause == "connection_lost"
    assert lost_error(ConnectionResetError()).cause == "connection_lost"


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "tls_client_certificate"),
        ("WRONG_VERSION_NUMBER", "tls_failed"),
        ("SOMETHING_NEW", "tls_failed"),
    ],
)
def test_a_handshake_that_fails_says_who_refused(reason: str, cause: str) -> None:
    raised = ssl.SSLError(1, "text of the library")
    raised.reason = reason
    error = tls_error(raised)
    assert (error.kind, error.cause) == ("upstream_tls_failed", cause)
    assert lost_error(raised).cause == cause
    assert "library" not in str(error)


@pytest.mark.parametrize(
    ("address", "first_day", "cause"),
    [
        ("127.0.0.1", -1, ""),
        ("127.0.0.2", -1, "tls_wrong_host"),
        ("127.0.0.1", -40, "tls_expired"),
        ("127.0.0.1", 5, "tls_not_yet_valid"),
    ],
)
@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_is_refused_with_a_reason(
    tmp_path: Path, address: str, first_day: int, cause: str, *, is_trusted: bool
) -> None:
    certificate, key = write_certificate(tmp_path, address, first_day=first_day)

    async def main() -> PeerError | None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            del reader
            writer.close()

        serving = server_context(str(certificate), str(key))
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving)
        port = server.sockets[0].getsockname()[1]
        tls = client_context(str(certificate) if is_trusted else "")
        pool = HttpPool(f"https://127.0.0.1:{port}/", PoolOptions(tls=tls))
        error = await pool.probe()
        await pool.close()
        server.close()
        return error

    error = run_async(main())
    told = error.cause if error is not None else ""
    assert told == (cause if is_trusted else "tls_unknown_ca")


def test_a_server_without_tls_is_named() -> None:
    async def main() -> PeerError | None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = HttpPool(f"https://127.0.0.1:{port}/", PoolOptions(tls=client_context()))
        error = await pool.probe()
        await pool.close()
        server.close()
        return error

    error = run_async(main())
    assert error is not None
    assert (error.cause, str(error)) == ("tls_failed", "the server does not answer with TLS")
