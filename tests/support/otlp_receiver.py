"""A collector on loopback that takes OTLP over HTTP and keeps what it gets."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """What has arrived."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.headers: list[dict[str, str]] = []
        self.spans: list[Any] = []
        self.logs: list[Any] = []
        self.resources: list[dict[str, str]] = []

    def take(self, path: str, body: bytes) -> int:
        """Take one export; return the HTTP status."""
        if path == "/v1/traces":
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(attributes(part.resource))
                for scope in part.scope_spans:
                    self.spans.extend(scope.spans)
        elif path == "/v1/logs":
            for group in ExportLogsServiceRequest.FromString(body).resource_logs:
                for records in group.scope_logs:
                    self.logs.extend(records.log_records)
        else:
            return 404
        return 200

    def span(self, name: str) -> Any:
        """Return the one span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


def attributes(holder: Any) -> dict[str, Any]:
    """Return a span's or resource's attributes as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Run a receiver for as long as the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(receiver.take(self.path, body))
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
