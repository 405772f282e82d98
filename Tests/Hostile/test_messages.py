"""gRPC messages that lie about their length, their form or their content (T10, T11)."""

import gzip
import zlib

import pytest

import wire
from target import common_pass, eventually, size
from wire import Wire, data, frame, message, request

LIMIT = 4 << 20
OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL = 0, 3, 8, 12, 13


def announced(length: int) -> list:
    return [message(b"begin", length=length)]


#: Name: pieces of the body (each one DATA frame), whether it ends there, the statuses that are right.
MESSAGES = {
    "length-0xFFFFFFFF": (announced(0xFFFFFFFF), False, {RESOURCE_EXHAUSTED}),
    "length-0x80000000": (announced(0x80000000), False, {RESOURCE_EXHAUSTED}),
    "5-MiB-announced": (announced(5 << 20), False, {RESOURCE_EXHAUSTED}),
    "one-above-the-limit": (announced(LIMIT + 1), False, {RESOURCE_EXHAUSTED}),
    "length-in-pieces": ([b"\x00\xff", b"\xff", b"\xff\xff"], False, {RESOURCE_EXHAUSTED}),
    "flag-2": ([message(b"\x0a\x01x", flag=2)], True, {INTERNAL}),
    "flag-255": ([message(b"\x0a\x01x", flag=255)], True, {INTERNAL}),
    "flag-1-without-encoding": ([message(b"\x0a\x01x", flag=1)], True, {INTERNAL}),
    "cut-header": ([b"\x00\x00"], True, {INTERNAL, UNIMPLEMENTED}),
    "cut-message": ([message(b"\x0a\x05", length=50)], True, {INTERNAL, UNIMPLEMENTED}),
    "no-message": ([b""], True, {UNIMPLEMENTED, INTERNAL}),
    "two-messages": ([wire.echo(b"a") + wire.echo(b"b")], True, {UNIMPLEMENTED, INTERNAL}),
    "two-messages-apart": ([wire.echo(b"a"), wire.echo(b"b")], True, {UNIMPLEMENTED, INTERNAL}),
    "message-and-rest": ([wire.echo(b"a") + b"\x00"], True, {UNIMPLEMENTED, INTERNAL}),
    "single-bytes": ([bytes([byte]) for byte in wire.echo(b"in pieces")], True, {OK}),
    "empty-message": ([message()], True, {OK}),
    "padding-around": ([wire.echo(b"x")[:3], b"", wire.echo(b"x")[3:]], True, {OK}),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_T10_messages_that_lie(server, name):
    pieces, is_end, right = MESSAGES[name]
    with common_pass(server):
        before = server.resident_kib
        for _ in range(size(1, 10)):
            with Wire(server.port) as attacker:
                attacker.settled()
                for stream in range(1, 2 * size(50, 100), 2):
                    attacker.open(stream, request(), more=b"".join(
                        data(stream, piece, end=is_end and index == len(pieces) - 1)
                        for index, piece in enumerate(pieces)))
                    answer = attacker.answer(stream)
                    assert answer.status in right, answer
                    if OK in right:
                        assert answer.body == b"".join(pieces)
                # One bad call harms no other, on the same connection either.
                assert attacker.call(stream + 2, wire.echo(b"x")).status == 0
                assert attacker.goaway is None
        assert server.resident_kib - before < 4096
    assert server.all_incidents() == (0, 0)


def test_T10_announced_lengths_take_no_memory(server):
    """4 MiB announced on each of 100 streams of 10 connections: 4 GB, were announcements believed."""
    with common_pass(server):
        before = server.resident_kib
        attackers = [Wire(server.port) for _ in range(10)]
        for attacker in attackers:
            attacker.settled()
            for stream in range(1, 200, 2):
                attacker.open(stream, request(), more=data(stream, message(b"begin", length=LIMIT)))
            attacker.round_trip()
        assert server.resident_kib - before < 64 << 10
        for attacker in attackers:
            attacker.close()


def compressed(payload: bytes) -> bytes:
    return message(gzip.compress(payload), flag=1)


def takes_gzip(server) -> bool:
    with Wire(server.port) as client:
        headers = request(wire.UNARY, ("grpc-encoding", "gzip"))
        return client.call(1, compressed(wire.echo(b"x")[5:]), headers).status == 0


def gzip_bomb(length: int) -> bytes:
    """`length` zero bytes, packed to a thousandth."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block, packed = bytes(1 << 20), b""
    for _ in range(length >> 20):
        packed += packer.compress(block)
    return packed + packer.flush()


@pytest.mark.parametrize("inflated", [LIMIT + (1 << 20), size(64 << 20, 1 << 30)],
                         ids=["just-above", "far-above"])
def test_T10_a_gzip_bomb(server, inflated):
    if not takes_gzip(server):
        pytest.skip("the server does not take gzip yet")
    bomb = message(gzip_bomb(inflated), flag=1)
    with common_pass(server):
        before = server.resident_kib
        with Wire(server.port) as attacker:
            attacker.settled()
            attacker.until(lambda: attacker.window > 65535, "the connection's window is announced")
            for stream in range(1, 2 * size(3, 100), 2):
                attacker.open(stream, request(wire.UNARY, ("grpc-encoding", "gzip")))
                answer = attacker.answers[stream]
                for start in range(0, len(bomb), 16384):
                    attacker.until(lambda: answer.is_over or attacker.window > 16384 and attacker.stream_windows.get(
                        stream, 0) + attacker.peer_settings[4] > start + 16384, "there is window, or an answer")
                    if answer.is_over:
                        break
                    piece = bomb[start:start + 16384]
                    attacker.window -= len(piece)
                    attacker.send(data(stream, piece, end=start + 16384 >= len(bomb)))
                assert attacker.answer(stream).status == RESOURCE_EXHAUSTED
        assert server.resident_kib - before < (2 * LIMIT >> 10) + 6144


@pytest.mark.parametrize("body", [b"not gzip", gzip.compress(b"cut" * 100)[:-12], b""], ids=["junk", "cut", "nothing"])
def test_T10_compressed_messages_that_do_not_unpack(server, body):
    if not takes_gzip(server):
        pytest.skip("the server does not take gzip yet")
    with Wire(server.port) as attacker:
        answer = attacker.call(1, message(body, flag=1), request(wire.UNARY, ("grpc-encoding", "gzip")))
        assert answer.status == INTERNAL


def varint(value: int) -> bytes:
    encoded = b""
    while value > 127:
        encoded, value = encoded + bytes([value & 127 | 128]), value >> 7
    return encoded + bytes([value])


#: Bodies that are no message, or strange ones; the statuses that are right.
BODIES = {
    "varint-of-11-bytes": (b"\x08" + b"\xff" * 10 + b"\x01", {INVALID_ARGUMENT, INTERNAL}),
    "varint-without-end": (b"\x08" + b"\xff" * 5, {INVALID_ARGUMENT, INTERNAL}),
    "length-beyond-the-end": (b"\x0a\x7f" + b"x", {INVALID_ARGUMENT, INTERNAL}),
    "length-of-2-to-the-63": (b"\x0a" + varint(1 << 63), {INVALID_ARGUMENT, INTERNAL}),
    "length-of-2-to-the-64-less-1": (b"\x0a" + varint((1 << 64) - 1), {INVALID_ARGUMENT, INTERNAL}),
    "group-without-end": (b"\x0b" * 100, {INVALID_ARGUMENT, INTERNAL}),
    "groups-10000-deep": (b"\x0b" * 10_000 + b"\x0c" * 10_000, {OK, INVALID_ARGUMENT, INTERNAL}),
    "wire-type-6": (b"\x0e", {INVALID_ARGUMENT, INTERNAL}),
    "wire-type-7": (b"\x0f", {INVALID_ARGUMENT, INTERNAL}),
    "field-0": (b"\x02\x00", {OK, INVALID_ARGUMENT, INTERNAL}),
    "unknown-fields": (b"".join(varint(number << 3) + b"\x01" for number in range(2, 50_000)), {OK, INVALID_ARGUMENT}),
    "repeated-amplification": (b"\x0a\x00" * 500_000, {OK, INVALID_ARGUMENT}),
    "nested-length": (b"\x12" + varint(100_000) + b"\x12\x00" * 50_000, {OK, INVALID_ARGUMENT}),
}


@pytest.mark.parametrize("name", BODIES)
def test_T11_bodies_that_are_no_message(server, name):
    """The codec itself has its own tests and fuzzing; this is its way through a server."""
    body, right = BODIES[name]
    with common_pass(server):
        before = server.resident_kib
        for _ in range(size(3, 50)):
            with Wire(server.port) as attacker:
                attacker.settled()
                attacker.until(lambda: attacker.window > 65535, "the connection's window is announced")
                whole = message(body)
                attacker.open(1, request())
                answer = attacker.answers[1]
                for start in range(0, len(whole), 16384):
                    attacker.until(lambda: answer.is_over or attacker.stream_windows.get(1, 0)
                                   + attacker.peer_settings[4] >= start + 16384, "there is window, or an answer")
                    attacker.send(data(1, whole[start:start + 16384], end=start + 16384 >= len(whole)))
                assert attacker.answer(1).status in right
        assert server.resident_kib - before < 8 * (len(body) >> 10) + 6144
    eventually(lambda: server.tally()["running"] == 0, "nothing runs")
