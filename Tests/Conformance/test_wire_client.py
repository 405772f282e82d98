"""The wire at our client: a server made by hand says what a test wants; interop-client reports what it took it for."""

import base64
import gzip
import re
import socket

import pytest
from hyperframe.frame import DataFrame, GoAwayFrame, RstStreamFrame

import handmade
from interop_protos import SimpleResponse
from processes import interop_client
from handmade import message

RESPONSE = [(":status", "200"), ("content-type", "application/grpc")]


def answer(peer: handmade.Server, stream: int):
    """EmptyCall's answer."""
    peer.send(peer.block(stream, RESPONSE), DataFrame(stream, message(b"")),
              peer.block(stream, [("grpc-status", "0")], end=True))


def outcome(script, case: str = "empty_unary") -> str:
    """What one run of the client says: `passed: CASE` or `failed: CODE REASON: MESSAGE`."""
    with handmade.server(script) as port:
        return interop_client(case, port)[1].rstrip("\n")


def refusing(fields: list):
    """A script that answers with one header block."""
    def script(peer):
        stream, _ = peer.request()
        peer.send(peer.block(stream, fields, end=True))
    return script


def test_wire_client_sends_what_a_request_must_have():
    seen = {}

    def script(peer):
        stream, fields = peer.request()
        seen["fields"] = fields
        answer(peer, stream)

    assert outcome(script) == "passed: empty_unary"
    fields = dict(seen["fields"])
    assert fields[":method"] == "POST" and fields[":path"] == "/grpc.testing.TestService/EmptyCall"
    assert fields["te"] == "trailers" and fields["content-type"] in ("application/grpc", "application/grpc+proto")
    assert "grpc-timeout" not in fields
    assert [name for name, _ in seen["fields"]] == sorted(
        [name for name, _ in seen["fields"]], key=lambda name: not name.startswith(":")), "pseudo-headers come first"


def test_wire_client_sends_binary_metadata_unpadded():
    seen = {}

    def script(peer):
        stream, fields = peer.request()
        seen.update(fields)
        peer.send(RstStreamFrame(stream, error_code=8))

    outcome(script, "custom_metadata")
    assert base64.b64decode(seen["x-grpc-test-echo-trailing-bin"], validate=True) == b"\xab\xab\xab"
    assert "=" not in seen["x-grpc-test-echo-trailing-bin"]


def test_wire_client_sends_the_time_that_is_left():
    seen = {}

    def script(peer):
        seen.update(peer.request()[1])

    said = outcome(script, "slow_server")
    assert said == "passed: slow_server"
    digits, unit = re.fullmatch(r"([0-9]{1,8})([HMSmun])", seen["grpc-timeout"]).groups()
    nanoseconds = int(digits) * {"H": 3600e9, "M": 60e9, "S": 1e9, "m": 1e6, "u": 1e3, "n": 1}[unit]
    assert 0 < nanoseconds <= 1e9


@pytest.mark.parametrize("text, meaning", [
    ("plain", "plain"), ("a%20b", "a b"), ("%E2%98%BA", "☺"), ("%e2%98%ba", "☺"), ("100%", "100%"), ("%", "%"),
    ("%4", "%4"), ("%ZZ%41", "%ZZA"), ("%FF", "\ufffd")])
def test_wire_client_reads_any_grpc_message(text, meaning):
    said = outcome(refusing([*RESPONSE, ("grpc-status", "9"), ("grpc-message", text)]))
    assert said.startswith("failed: FAILED_PRECONDITION") and said.endswith(f": {meaning}")


@pytest.mark.parametrize("status", ["17", "-1", "x", "99999999999"])
def test_wire_client_takes_an_unheard_of_status_for_unknown(status):
    assert outcome(refusing([*RESPONSE, ("grpc-status", status)])).startswith("failed: UNKNOWN")


@pytest.mark.parametrize("http_status, code", [
    ("400", "INTERNAL"), ("401", "UNAUTHENTICATED"), ("403", "PERMISSION_DENIED"), ("404", "UNIMPLEMENTED"),
    ("429", "UNAVAILABLE"), ("500", "UNKNOWN"), ("502", "UNAVAILABLE"), ("503", "UNAVAILABLE"), ("504", "UNAVAILABLE")])
def test_wire_client_makes_a_code_of_an_http_status(http_status, code):
    said = outcome(refusing([(":status", http_status), ("content-type", "text/html")]))
    assert said.startswith(f"failed: {code}")


def test_wire_client_wants_a_status():
    assert outcome(refusing(RESPONSE)).startswith("failed: UNKNOWN")


@pytest.mark.parametrize("body, code", [
    (b"", "UNIMPLEMENTED"), (message(b"") * 2, "UNIMPLEMENTED"), (message(b"a")[:4], "INTERNAL"),
    (message(b"", 1), "INTERNAL"), (message(b"", 2), "INTERNAL"), (message(b"\xff"), "INTERNAL"),
    (b"\0\x7f\xff\xff\xff", "RESOURCE_EXHAUSTED")])
def test_wire_client_refuses_a_wrong_body(body, code):
    def script(peer):
        stream, _ = peer.request()
        peer.send(peer.block(stream, RESPONSE), DataFrame(stream, body),
                  peer.block(stream, [("grpc-status", "0")], end=True))

    assert outcome(script).startswith(f"failed: {code}")


def test_wire_client_offers_gzip_and_reads_it():
    def script(peer):
        stream, fields = peer.request()
        assert "gzip" in dict(fields)["grpc-accept-encoding"].split(",")
        body = message(gzip.compress(SimpleResponse(payload={"body": bytes(314159)}).SerializeToString()), 1)
        for _ in range(2):
            peer.send(peer.block(stream, [*RESPONSE, ("grpc-encoding", "gzip")]), DataFrame(stream, body),
                      peer.block(stream, [("grpc-status", "0")], end=True))
            if stream == 1:
                stream, _ = peer.request()

    assert outcome(script, "server_compressed_unary") == "passed: server_compressed_unary"


@pytest.mark.parametrize("reset, code", [
    (0, "INTERNAL"), (1, "INTERNAL"), (2, "INTERNAL"), (3, "INTERNAL"), (5, "INTERNAL"), (6, "INTERNAL"),
    (8, "CANCELLED"), (9, "INTERNAL"), (10, "INTERNAL"), (11, "RESOURCE_EXHAUSTED"), (13, "INTERNAL")])
def test_wire_client_makes_a_code_of_a_reset(reset, code):
    def script(peer):
        stream, _ = peer.request()
        peer.send(RstStreamFrame(stream, error_code=reset))

    assert outcome(script).startswith(f"failed: {code}")


def test_wire_client_repeats_a_refused_call_once():
    def once(peer):
        peer.send(RstStreamFrame(peer.request()[0], error_code=7))
        answer(peer, peer.request()[0])

    def twice(peer):
        for _ in range(2):
            peer.send(RstStreamFrame(peer.request()[0], error_code=7))

    assert outcome(once) == "passed: empty_unary"
    assert outcome(twice).startswith("failed: UNAVAILABLE")


def test_wire_client_takes_a_call_elsewhere_that_a_goaway_leaves_out():
    seen = []

    def script(peer):
        stream, _ = peer.request()
        seen.append(stream)
        if len(seen) == 1:
            peer.send(GoAwayFrame(0, last_stream_id=0, error_code=0))
        else:
            answer(peer, stream)

    assert outcome(script) == "passed: empty_unary"
    assert len(seen) == 2


def test_wire_client_gets_its_answer_after_a_goaway_that_takes_it_in():
    def script(peer):
        stream, _ = peer.request()
        peer.send(GoAwayFrame(0, last_stream_id=(1 << 31) - 1, error_code=0))
        peer.send(GoAwayFrame(0, last_stream_id=stream, error_code=0))
        answer(peer, stream)

    assert outcome(script) == "passed: empty_unary"


def test_wire_client_without_a_server_is_told_that_it_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert interop_client("empty_unary", port)[1].startswith("failed: UNAVAILABLE")


def test_wire_client_that_loses_its_connection_is_told_that_it_is_unavailable():
    def script(peer):
        peer.request()
        peer.socket.shutdown(socket.SHUT_RDWR)

    assert outcome(script).startswith("failed: UNAVAILABLE")
