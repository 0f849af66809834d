"""TLS for connections to upstream servers; certificates are always verified."""

import ssl


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """Return a context that trusts the system's certificates and those in ``ca_file``."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context
