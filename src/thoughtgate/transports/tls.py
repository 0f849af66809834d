"""TLS towards upstream servers: the system's trust store, certificates always verified."""

import ssl


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """Return a context that trusts the system's store, and one more file of roots if given."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context
