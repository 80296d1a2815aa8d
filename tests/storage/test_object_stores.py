"""Object stores without an answer, or refuse: one sentence, within seconds."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from raykd.errors import StoreError
from raykd.storage.object_stores import hint_for, short_message
from raykd.storage.store import Storage

DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
NO_TOKEN = (
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of Could not create a OAuth2 "
    "access token to authenticate the request. The request was not sent, as such. error_info={reason=, domain=})"
)


@contextmanager
def answering(status: int, body: bytes):
    """A server with the same answer to everything; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_PUT = do_POST = do_GET

        def log_message(self, format, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_refused_request_asks_for_credentials():
    with answering(403, DENIED) as at:
        storage = Storage(f"s3://a:b@bucket/x?endpoint_override={at}&scheme=http&region=eu")
        with pytest.raises(StoreError, match=r"ACCESS_DENIED.*; set AWS_ACCESS_KEY_ID and") as caught:
            storage.names()
    assert not caught.value.transient


@pytest.mark.timeout(60)  # its client alone tries for 15 minutes
def test_google_storage_without_an_answer_is_given_up_within_seconds(monkeypatch):
    # No machine of Google's, and no key: its client asks both.
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("GCE_METADATA_ROOT", "127.0.0.1:9")
    with pytest.raises(
        StoreError, match=r"^gs://bucket/x/?: cannot be listed \(.*; set GOOGLE_APPLICATION_CRED"
    ):
        Storage("gs://bucket/x").names()


def test_what_a_client_says_twice_is_shown_once():
    error = OSError(NO_TOKEN)
    assert short_message(error).endswith("Could not create a OAuth2 access token to authenticate the request")
    assert short_message(OSError("s3://KEY:secret@bucket  is gone.")) == "s3://KEY:***@bucket is gone"
    for scheme in ("gs", "gcs"):
        assert "GOOGLE_APPLICATION_CREDENTIALS" in hint_for(f"{scheme}://bucket", error)
    assert hint_for("s3://bucket", OSError("network is unreachable")).startswith(
        "check the address, the network"
    )
