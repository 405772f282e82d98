"""Frames and requests that break the protocols, one by one (T12). RFC 9113's sections are named in the cases' ids;
what gRPC asks for is the table of the wire."""

import struct

import pytest
from hyperframe.frame import PingFrame

import wire
from wire import (COMPRESSION_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PREFACE, PROTOCOL_ERROR, STREAM_CLOSED,
                  UNARY, UPLOAD, Wire, data, frame, request, reset, settings, window_update)

END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 4, 8, 32
#: A stream that no case uses.
LATER = 1001


class Ends:
    """The connection ends; a GOAWAY before names one of the codes."""

    def __init__(self, *codes: int):
        self.codes = codes

    def check(self, client: Wire) -> None:
        client.until_end()
        if client.goaway:
            assert client.goaway.error_code in self.codes, client.goaway


class Resets(Ends):
    """Stream 1 is reset with one of the codes, or the connection ends with one."""

    def check(self, client: Wire) -> None:
        answer = client.answers[1]
        client._wait(lambda: answer.reset is not None or client.end is not None, "stream 1 is reset")
        if answer.reset is None:
            super().check(client)
        else:
            assert answer.reset in self.codes, answer
            lives(client)


class EndsOrLives(Ends):
    """As nghttp2 does: it takes the frame for one of a stream long closed."""

    def check(self, client: Wire) -> None:
        client.send(wire.ping())
        client._wait(lambda: client.end is not None or client.of(PingFrame), "it ends, or answers")
        if client.end is None and not client.goaway:
            lives(client)
        else:
            super().check(client)


class Answers:
    """Stream 1 is answered with one of the gRPC statuses; a reset counts as the status it stands for."""

    def __init__(self, *statuses: int, http: tuple = ("200",)):
        self.statuses, self.http = statuses, http

    def check(self, client: Wire) -> None:
        answer = client.answer(1)
        assert answer.reset in (None, wire.NO_ERROR), answer
        assert answer.status in self.statuses and answer.http in self.http, answer
        lives(client)


class Lives:
    """Nothing comes of it, and the connection serves on."""

    def check(self, client: Wire) -> None:
        lives(client)


def lives(client: Wire) -> None:
    assert client.call(LATER, wire.echo(b"x")).status == 0
    assert client.goaway is None


def head(client: Wire, stream: int = 1, flags: int = END_HEADERS, path: str = UPLOAD, extra: tuple = (),
         **replaced) -> bytes:
    return frame(1, flags, stream, client.block(request(path, *extra, **replaced)))


def fields(client: Wire, *pairs: tuple, flags: int = END_HEADERS | END_STREAM, stream: int = 1) -> bytes:
    """A header block of exactly these."""
    return frame(1, flags, stream, client.block(list(pairs)))


def without(name: str):
    return lambda client: frame(1, END_HEADERS | END_STREAM, 1, client.block(request(UNARY, without=(name,))))


def with_field(name: str, value: str, end: bool = True):
    flags = END_HEADERS | (END_STREAM if end else 0)
    return lambda client: head(client, flags=flags, path=UNARY, extra=((name, value),))


METHOD, SCHEME, PATH = (":method", "POST"), (":scheme", "http"), (":path", UNARY)
AUTHORITY = (":authority", "localhost")
PROTOCOL = Ends(PROTOCOL_ERROR)
MALFORMED = Resets(PROTOCOL_ERROR)

#: Each on a connection of its own that has exchanged SETTINGS.
FRAMES = {
    # 4: frames
    "4.1 unknown frame type": (lambda c: frame(0x16, 0xFF, 0, bytes(8)), Lives()),
    "4.1 unknown frame type on a stream": (lambda c: head(c) + frame(0x16, 0, 1, b"x") + reset(1), Lives()),
    "4.1 unknown flags on PING": (lambda c: frame(6, 0x16, 0, bytes(8)), Lives()),
    "4.1 reserved bit of the stream id": (lambda c: frame(6, 0, 0x80000000, bytes(8)), Lives()),
    "4.2 DATA above the frame size": (lambda c: head(c) + data(1, bytes(16385)), Resets(FRAME_SIZE_ERROR)),
    "4.2 HEADERS above the frame size": (lambda c: frame(1, END_HEADERS, 1, bytes(16385)), Ends(FRAME_SIZE_ERROR)),
    "4.2 SETTINGS above the frame size": (lambda c: settings(*[(99, 0)] * 2731), Ends(FRAME_SIZE_ERROR)),
    "4.2 unknown frame above the frame size": (lambda c: frame(0x16, 0, 0, bytes(16385)), Ends(FRAME_SIZE_ERROR)),
    "4.3 block that does not decode": (
        lambda c: frame(1, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), Ends(COMPRESSION_ERROR)),
    "4.3 PRIORITY within a header block": (
        lambda c: head(c, flags=0) + frame(2, 0, 1, struct.pack(">IB", 0, 1)), PROTOCOL),
    "4.3 PING within a header block": (lambda c: head(c, flags=0) + frame(6, 0, 0, bytes(8)), PROTOCOL),
    "4.3 other stream's HEADERS within a block": (lambda c: head(c, flags=0) + head(c, stream=3), PROTOCOL),
    "4.3 unknown frame within a header block": (lambda c: head(c, flags=0) + frame(0x16, 0, 0), PROTOCOL),
    # 5.1: states
    "5.1 DATA on an idle stream": (lambda c: data(1, b"x"), Ends(PROTOCOL_ERROR)),
    "5.1 RST_STREAM on an idle stream": (lambda c: reset(1), PROTOCOL),
    "5.1 WINDOW_UPDATE on an idle stream": (lambda c: window_update(1, 1), PROTOCOL),
    "5.1 CONTINUATION on an idle stream": (lambda c: frame(9, END_HEADERS, 1), PROTOCOL),
    "5.1 PRIORITY on an idle stream": (lambda c: frame(2, 0, 1, struct.pack(">IB", 0, 1)), Lives()),
    "5.1 DATA after the end": (
        lambda c: head(c, flags=5) + data(1, b"x"), Resets(STREAM_CLOSED, PROTOCOL_ERROR)),
    "5.1 HEADERS after the end": (
        lambda c: head(c, flags=5) + head(c, flags=5), Resets(STREAM_CLOSED, PROTOCOL_ERROR)),
    "5.1 CONTINUATION after the end": (
        lambda c: head(c, flags=5) + frame(9, END_HEADERS, 1), Ends(STREAM_CLOSED, PROTOCOL_ERROR)),
    "5.1 DATA after RST_STREAM": (lambda c: head(c) + reset(1) + data(1, b"x"), Lives()),
    "5.1.1 even stream id": (lambda c: head(c, stream=2), PROTOCOL),
    "5.1.1 stream id lower than before": (
        lambda c: head(c, stream=5, flags=5) + head(c, stream=3, flags=5), EndsOrLives(PROTOCOL_ERROR, STREAM_CLOSED)),
    "5.3.1 stream depends on itself": (
        lambda c: frame(1, END_HEADERS | PRIORITY, 1, struct.pack(">IB", 1, 15) + c.block(request(UPLOAD))), MALFORMED),
    # 6: each type
    "6.1 DATA on stream 0": (lambda c: data(0, b"x"), PROTOCOL),
    "6.1 DATA with padding beyond its end": (lambda c: head(c) + frame(0, PADDED, 1, b"\x09x"), PROTOCOL),
    "6.1 padded DATA without a length": (
        lambda c: head(c) + frame(0, PADDED, 1), Ends(PROTOCOL_ERROR, FRAME_SIZE_ERROR)),
    "6.2 HEADERS on stream 0": (lambda c: head(c, stream=0), PROTOCOL),
    "6.2 HEADERS with padding beyond its end": (lambda c: frame(1, END_HEADERS | PADDED, 1, b"\x7f\x83"), PROTOCOL),
    "6.3 PRIORITY on stream 0": (lambda c: frame(2, 0, 0, struct.pack(">IB", 1, 1)), PROTOCOL),
    "6.3 PRIORITY of 4 bytes": (lambda c: head(c) + frame(2, 0, 1, bytes(4)), Resets(FRAME_SIZE_ERROR)),
    "6.4 RST_STREAM on stream 0": (lambda c: reset(0), PROTOCOL),
    "6.4 RST_STREAM of 3 bytes": (lambda c: head(c) + frame(3, 0, 1, bytes(3)), Ends(FRAME_SIZE_ERROR)),
    "6.5 SETTINGS acknowledgement with a body": (lambda c: frame(4, 1, 0, bytes(6)), Ends(FRAME_SIZE_ERROR)),
    "6.5 SETTINGS on a stream": (lambda c: frame(4, 0, 1), PROTOCOL),
    "6.5 SETTINGS of 3 bytes": (lambda c: frame(4, 0, 0, bytes(3)), Ends(FRAME_SIZE_ERROR)),
    "6.5.2 ENABLE_PUSH of 2": (lambda c: settings((2, 2)), PROTOCOL),
    "6.5.2 INITIAL_WINDOW_SIZE of 2^31": (lambda c: settings((4, 1 << 31)), Ends(FLOW_CONTROL_ERROR)),
    "6.5.2 MAX_FRAME_SIZE of 16383": (lambda c: settings((5, 16383)), PROTOCOL),
    "6.5.2 MAX_FRAME_SIZE of 2^24": (lambda c: settings((5, 1 << 24)), PROTOCOL),
    "6.5.2 unknown setting": (lambda c: settings((0xFF, 1)), Lives()),
    "6.5.3 the last of two values counts": (lambda c: settings((4, 0), (4, 65535)), Lives()),
    "6.6 PUSH_PROMISE from a client": (lambda c: head(c) + frame(5, END_HEADERS, 1, struct.pack(">I", 2)), PROTOCOL),
    "6.7 PING on a stream": (lambda c: frame(6, 0, 1, bytes(8)), PROTOCOL),
    "6.7 PING of 7 bytes": (lambda c: frame(6, 0, 0, bytes(7)), Ends(FRAME_SIZE_ERROR)),
    "6.7 answer nobody asked for": (lambda c: frame(6, 1, 0, bytes(8)), Lives()),
    "6.8 GOAWAY on a stream": (lambda c: frame(7, 0, 1, bytes(8)), PROTOCOL),
    "6.8 GOAWAY of 7 bytes": (lambda c: frame(7, 0, 0, bytes(7)), Ends(FRAME_SIZE_ERROR)),
    "6.9 WINDOW_UPDATE of 0 on the connection": (lambda c: window_update(0, 0), PROTOCOL),
    "6.9 WINDOW_UPDATE of 0 on a stream": (lambda c: head(c) + window_update(1, 0), MALFORMED),
    "6.9 WINDOW_UPDATE of 3 bytes": (lambda c: frame(8, 0, 0, bytes(3)), Ends(FRAME_SIZE_ERROR)),
    "6.9.1 connection window above 2^31-1": (
        lambda c: window_update(0, 0x7FFFFFFF) * 2, Ends(FLOW_CONTROL_ERROR)),
    "6.9.1 stream window above 2^31-1": (
        lambda c: head(c) + window_update(1, 0x7FFFFFFF) * 2, Resets(FLOW_CONTROL_ERROR)),
    "6.9.2 stream window above 2^31-1 by SETTINGS": (
        lambda c: head(c) + window_update(1, 0x7FFFFFFF - 65535) + settings((4, 65536)), Resets(FLOW_CONTROL_ERROR)),
    "6.10 CONTINUATION on stream 0": (lambda c: head(c, flags=0) + frame(9, END_HEADERS, 0), PROTOCOL),
    "6.10 CONTINUATION of another stream": (lambda c: head(c, flags=0) + frame(9, END_HEADERS, 3), PROTOCOL),
    "6.10 CONTINUATION after a whole block": (lambda c: head(c) + frame(9, END_HEADERS, 1), PROTOCOL),
    "6.10 CONTINUATION after DATA": (lambda c: head(c) + data(1, b"\x00") + frame(9, END_HEADERS, 1), PROTOCOL),
    "6.10 block in pieces": (
        lambda c: head(c, flags=0) + frame(9, 0, 1) + frame(9, END_HEADERS, 1) + reset(1), Lives()),
    # 8: HTTP
    "8.1 trailers without the end": (lambda c: head(c) + fields(c, ("x", "1"), flags=END_HEADERS), MALFORMED),
    "8.1 pseudo-header in the trailers": (lambda c: head(c) + fields(c, METHOD), MALFORMED),
    "8.2.1 upper-case name": (with_field("X-Upper", "1"), MALFORMED),
    "8.2.1 space in a name": (with_field("x y", "1"), MALFORMED),
    "8.2.1 colon in a name": (with_field("x:y", "1"), MALFORMED),
    "8.2.1 NUL in a value": (with_field("x", "a\0b"), MALFORMED),
    "8.2.1 line break in a value": (with_field("x", "a\r\nb: c"), MALFORMED),
    "8.2.2 connection header": (with_field("connection", "keep-alive"), MALFORMED),
    "8.2.2 transfer-encoding": (with_field("transfer-encoding", "chunked"), MALFORMED),
    "8.2.2 te other than trailers": (
        lambda c: frame(1, 5, 1, c.block(request(UNARY, te="trailers, deflate"))), MALFORMED),
    "8.3 unknown pseudo-header": (with_field(":unknown", "1"), MALFORMED),
    "8.3 pseudo-header of a response": (lambda c: fields(c, METHOD, SCHEME, PATH, (":status", "200")), MALFORMED),
    "8.3 pseudo-header after others": (lambda c: fields(c, METHOD, SCHEME, ("x", "1"), PATH), MALFORMED),
    "8.3.1 no :method": (without(":method"), MALFORMED),
    "8.3.1 no :scheme": (without(":scheme"), MALFORMED),
    "8.3.1 no :path": (without(":path"), MALFORMED),
    "8.3.1 empty :path": (lambda c: fields(c, METHOD, SCHEME, (":path", "")), MALFORMED),
    "8.3.1 two :method": (lambda c: fields(c, METHOD, METHOD, SCHEME, PATH), MALFORMED),
    "8.3.1 two :scheme": (lambda c: fields(c, METHOD, SCHEME, SCHEME, PATH), MALFORMED),
    "8.3.1 two :path": (lambda c: fields(c, METHOD, SCHEME, PATH, PATH), MALFORMED),
    "8.1.1 less than content-length": (
        lambda c: head(c, path=UNARY, extra=(("content-length", "100"),))
        + data(1, wire.echo(b"x"), end=True), MALFORMED),
    "8.1.1 more than content-length": (
        lambda c: head(c, path=UNARY, extra=(("content-length", "1"),))
        + data(1, wire.echo(b"x"), end=True), MALFORMED),
    "8.1.1 content-length without a body": (with_field("content-length", "1"), MALFORMED),
    "8.1.1 content-length that is no number": (with_field("content-length", "x", end=False), MALFORMED),
    "8.1.1 two content-lengths": (
        lambda c: head(c, extra=(("content-length", "1"), ("content-length", "2"))), MALFORMED),
}


@pytest.mark.parametrize("name", FRAMES)
def test_T12_a_connection_that_breaks_http2(shared, name):
    make, outcome = FRAMES[name]
    with Wire(shared.port) as client:
        client.settled()
        client.send(make(client))
        outcome.check(client)
    assert shared.process.poll() is None


OPENINGS = {
    "3.4 HTTP/1.1": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "3.4 wrong preface": PREFACE.replace(b"SM", b"XX") + settings(),
    "3.4 TLS to a plaintext port": bytes.fromhex("16030100c8010000c40303") + bytes(189),
    "3.4 PING before SETTINGS": PREFACE + frame(6, 0, 0, bytes(8)),
    "3.4 HEADERS before SETTINGS": PREFACE + frame(1, 5, 1, b"\x83\x86\x84"),
    "3.4 acknowledgement before SETTINGS": PREFACE + frame(4, 1),
    "3.4 zeros": bytes(1000),
    "3.4 long line": b"A" * 100_000,
}


@pytest.mark.parametrize("name", OPENINGS)
def test_T12_a_connection_that_does_not_begin_as_http2(shared, name):
    with Wire(shared.port, greet=False) as client:
        client.send(OPENINGS[name])
        client.until_end()
        if client.goaway:
            assert client.goaway.error_code in (PROTOCOL_ERROR, FRAME_SIZE_ERROR)


def unary(body: bytes = wire.echo(b"x"), *extra: tuple, path: str = UNARY, missing: tuple = (), **replaced):
    return lambda c: (frame(1, END_HEADERS, 1, c.block(request(path, *extra, without=missing, **replaced)))
                      + data(1, body, end=True))


ECHOED = Answers(0)
UNIMPLEMENTED = Answers(12)

#: Whole calls, well-formed as HTTP/2.
CALLS = {
    "verb GET": (unary(method="GET"), Answers(12, http=("405",))),
    "verb PUT": (unary(method="PUT"), Answers(12, http=("405",))),
    "verb in lower case": (unary(method="post"), Answers(12, http=("405",))),
    "verb CONNECT": (lambda c: fields(c, (":method", "CONNECT"), AUTHORITY), Answers(12, http=("405",))),
    "path of nothing": (unary(path="/"), UNIMPLEMENTED),
    "path without a method": (unary(path="/echo.Echo"), UNIMPLEMENTED),
    "path with an empty method": (unary(path="/echo.Echo/"), UNIMPLEMENTED),
    "path with a third part": (unary(path="/echo.Echo/Unary/x"), UNIMPLEMENTED),
    "path in other case": (unary(path="/echo.echo/Unary"), UNIMPLEMENTED),
    "path with a query": (unary(path="/echo.Echo/Unary?x=1"), UNIMPLEMENTED),
    "path percent-encoded": (unary(path="/echo.Echo/%55nary"), UNIMPLEMENTED),
    "path with dots": (unary(path="/x/../echo.Echo/Unary"), UNIMPLEMENTED),
    "path of 4000 bytes": (unary(path="/" + "p" * 4000), UNIMPLEMENTED),
    "path without a slash": (unary(path="echo.Echo/Unary"), Resets(PROTOCOL_ERROR)),
    "path unknown service": (unary(path="/no.Such/Unary"), UNIMPLEMENTED),
    "content type of protobuf": (unary(content_type="application/grpc+proto"), ECHOED),
    "content type with parameters": (unary(content_type="application/grpc;charset=utf-8"), ECHOED),
    "content type of JSON": (unary(content_type="application/json"), Answers(2, 3, 12, 13, http=("415",))),
    "content type of HTML": (unary(content_type="text/html"), Answers(2, 3, 12, 13, http=("415",))),
    "content type almost right": (unary(content_type="application/grpcx"), Answers(2, 3, 12, 13, http=("415",))),
    "content type of grpc-web": (unary(content_type="application/grpc-web"), Answers(2, 3, 12, 13, http=("415",))),
    "content type of grpc+json": (unary(content_type="application/grpc+json"), Answers(2, 3, 12, 13, http=("415",))),
    "content type missing": (unary(missing=("content-type",)), Answers(2, 3, 12, 13, http=("415",))),
    "timeout of 9 digits": (unary(wire.echo(b"x"), ("grpc-timeout", "123456789S")), Answers(3, 13)),
    "timeout of 8 digits": (unary(wire.echo(b"x"), ("grpc-timeout", "99999999H")), ECHOED),
    "timeout without a unit": (unary(wire.echo(b"x"), ("grpc-timeout", "100")), Answers(3, 13)),
    "timeout of an unknown unit": (unary(wire.echo(b"x"), ("grpc-timeout", "1s")), Answers(3, 13)),
    "timeout without digits": (unary(wire.echo(b"x"), ("grpc-timeout", "S")), Answers(3, 13)),
    "timeout empty": (unary(wire.echo(b"x"), ("grpc-timeout", "")), Answers(3, 13)),
    "timeout negative": (unary(wire.echo(b"x"), ("grpc-timeout", "-1S")), Answers(3, 13)),
    "timeout with a point": (unary(wire.echo(b"x"), ("grpc-timeout", "1.5S")), Answers(3, 13)),
    "timeout with a space": (unary(wire.echo(b"x"), ("grpc-timeout", "1 S")), Answers(3, 13)),
    "timeout of words": (unary(wire.echo(b"x"), ("grpc-timeout", "soon")), Answers(3, 13)),
    "timeout of 0": (unary(wire.echo(b"x"), ("grpc-timeout", "0S")), Answers(4)),
    "timeout of 0 nanoseconds": (unary(wire.echo(b"x"), ("grpc-timeout", "0n")), Answers(4)),
    "encoding unknown": (unary(wire.echo(b"x"), ("grpc-encoding", "snappy")), UNIMPLEMENTED),
    "encoding empty": (unary(wire.echo(b"x"), ("grpc-encoding", "")), Answers(12, 13)),
    "encoding identity": (unary(wire.echo(b"x"), ("grpc-encoding", "identity")), ECHOED),
    "accept-encoding of junk": (unary(wire.echo(b"x"), ("grpc-accept-encoding", ",,;;junk")), ECHOED),
    "te missing": (unary(missing=("te",)), Answers(0, 3, 13)),
    "authority missing": (unary(missing=(":authority",)), Resets(PROTOCOL_ERROR)),
    "scheme of another kind": (unary(scheme="ftp"), Answers(0, 3, 12, 13)),
    "binary metadata that is no base64": (unary(wire.echo(b"x"), ("x-bin", "!!!!")), Answers(0, 3, 13)),
    "binary metadata padded": (unary(wire.echo(b"x"), ("x-bin", "YQ==")), ECHOED),
    "binary metadata unpadded": (unary(wire.echo(b"x"), ("x-bin", "YQ")), ECHOED),
    "binary metadata in a list": (unary(wire.echo(b"x"), ("x-bin", "YQ,Yg==,,")), Answers(0, 3, 13)),
    "binary metadata with an empty name": (unary(wire.echo(b"x"), ("-bin", "YQ")), Answers(0, 3, 13)),
    "metadata of odd characters": (unary(wire.echo(b"x"), ("x!#$", "1")), Answers(0, 3, 13)),
    "metadata outside ASCII": (unary(wire.echo(b"x"), ("x", "\xe9")), Answers(0, 3, 13)),
    "metadata 200 times the same": (unary(wire.echo(b"x"), *[("x", str(index)) for index in range(200)]), ECHOED),
    "metadata with reserved names": (unary(wire.echo(b"x"), ("grpc-status", "5"), ("grpc-unknown", "1")), ECHOED),
    "traceparent of junk": (unary(wire.echo(b"x"), ("traceparent", "00-zz-zz-zz")), ECHOED),
    "trailers from the client": (
        lambda c: head(c, path=UNARY) + data(1, wire.echo(b"x")) + fields(c, ("x", "1")), ECHOED),
    "timeout in the trailers": (
        lambda c: head(c, path=UNARY) + data(1, wire.echo(b"x")) + fields(c, ("grpc-timeout", "0S")), ECHOED),
    "headers and end without a message": (lambda c: head(c, path=UNARY, flags=5), Answers(12, 13)),
    "upload without messages": (lambda c: head(c, path=UPLOAD, flags=5), ECHOED),
    "upload of the wrong type": (
        lambda c: head(c) + data(1, wire.message(b"\x0a\xff"), end=True), Answers(3, 13)),
    "padded frames": (
        lambda c: frame(1, END_HEADERS | PADDED, 1, b"\x05" + c.block(request()) + bytes(5))
        + frame(0, PADDED | END_STREAM, 1, b"\xff" + wire.echo(b"x") + bytes(255)), ECHOED),
    "headers with a priority": (
        lambda c: frame(1, END_HEADERS | PRIORITY, 1, struct.pack(">IB", 0, 255) + c.block(request()))
        + data(1, wire.echo(b"x"), end=True), ECHOED),
}


@pytest.mark.parametrize("name", CALLS)
def test_T12_a_call_that_breaks_grpc(shared, name):
    make, outcome = CALLS[name]
    with Wire(shared.port) as client:
        client.settled()
        client.send(make(client))
        outcome.check(client)
        answer = client.answers.get(1)
        if answer and answer.blocks and answer.status not in (None, 0):
            # An error is one header block and has no body.
            assert len(answer.blocks) == 1 and answer.body == b"", answer
            assert answer.header("grpc-status") == str(answer.status)


def test_T12_an_unknown_encoding_is_told_what_is_known(shared):
    with Wire(shared.port) as client:
        answer = client.call(1, wire.echo(b"x"), request(UNARY, ("grpc-encoding", "snappy")))
        assert "identity" in answer.header("grpc-accept-encoding").split(",")


def test_T12_the_suite_has_the_cases_it_says():
    assert len(FRAMES) + len(OPENINGS) >= 80 and len(CALLS) >= 50
