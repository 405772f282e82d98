"""Fixtures of the conformance tests. `deploy/local/test` calls them; by hand, after deploy/local/setup:

    .local/venv/bin/python -m pytest Tests/Conformance
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import handmade  # noqa: E402
import peer_server  # noqa: E402
from processes import CERTIFICATE, KEY, interop_server  # noqa: E402


@pytest.fixture(scope="session")
def plain_server():
    with interop_server() as server:
        yield server


@pytest.fixture(scope="session")
def tls_server():
    with interop_server(tls=True) as server:
        yield server


@pytest.fixture(scope="session")
def plain_peer():
    """The port of a grpcio server."""
    with peer_server.running() as port:
        yield port


@pytest.fixture(scope="session")
def tls_peer():
    with peer_server.running(CERTIFICATE, KEY) as port:
        yield port


@pytest.fixture
def connection(plain_server):
    """A hand-made client on a connection of its own."""
    client = handmade.Client(plain_server.port)
    yield client
    client.close()
