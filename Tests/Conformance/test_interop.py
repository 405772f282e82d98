"""gRPC's interoperability cases in both directions: grpcio's client against our server, our client against grpcio's
server, each in plaintext and over TLS."""

import grpc
import pytest

import interop_cases
from processes import AUTHORITY, SOAK_CALLS, interop_client

CASES = [case.__name__ for case in interop_cases.CASES]
TRANSPORTS = ["plain", "tls"]
SOAK = ["--count", str(SOAK_CALLS)]


@pytest.fixture
def channel(request):
    """Opens channels to our server; they are closed at the test's end."""
    opened = []

    def open_one(transport):
        server = request.getfixturevalue(f"{transport}_server")
        target = f"127.0.0.1:{server.port}"
        # Channels with equal options share connections unless told not to.
        options = [("grpc.use_local_subchannel_pool", 1)]
        if transport == "tls":
            credentials = grpc.ssl_channel_credentials(AUTHORITY.read_bytes())
            opened.append(grpc.secure_channel(target, credentials, options=options))
        else:
            opened.append(grpc.insecure_channel(target, options=options))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("case", CASES)
def test_interop_grpcio_calls_our_server(case, transport, channel):
    getattr(interop_cases, case)(lambda: channel(transport))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("case", CASES)
def test_interop_our_client_calls_grpcio(case, transport, request):
    port = request.getfixturevalue(f"{transport}_peer")
    # A service on grpcio is not told whether a request was compressed.
    held, said = interop_client(case, port, "--no-probe", *SOAK, tls=transport == "tls")
    assert held, said


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("case", CASES)
def test_interop_our_client_calls_our_server(case, transport, request):
    server = request.getfixturevalue(f"{transport}_server")
    held, said = interop_client(case, server.port, *SOAK, tls=transport == "tls")
    assert held, said


def test_interop_our_client_tells_a_failed_case(plain_peer):
    held, said = interop_client("no_such_case", plain_peer)
    assert not held and "--case" in said
