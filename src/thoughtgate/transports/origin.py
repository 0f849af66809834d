"""The origin and endpoint of an HTTP server, read from its URL."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Origin:
    """The server and endpoint that requests are sent to."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query of the endpoint."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"


def parse_origin(url: str) -> Origin:
    """Read an http or https URL.

    Raises:
        ValueError: the URL has another scheme, a user name or a fragment.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is not an http or https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL must not contain credentials")
    if parts.fragment or any(char <= " " or char == "\x7f" for char in url):
        raise ValueError("a URL must not contain a fragment or white space")
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    target.encode("ascii")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Origin(parts.scheme, parts.hostname, port, target)
