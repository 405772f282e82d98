"""Header blocks without end, without measure, or that unpack to more than they seem (T3, T4)."""

import pytest
import wire
from target import common_pass, eventually, one_line_each, size
from wire import Wire, frame, request

#: A connection's part of memory may grow by this much under a header attack.
GROWTH_KIB = 1 << 10


def literal(name: bytes, value: bytes) -> bytes:
    """A field that is not indexed."""
    def number(value: int) -> bytes:
        if value < 127:
            return bytes([value])
        rest, encoded = value - 127, b"\x7f"
        while rest > 127:
            encoded, rest = encoded + bytes([rest & 127 | 128]), rest >> 7
        return encoded + bytes([rest])
    return b"\x00" + number(len(name)) + name + number(len(value)) + value


def continuations(block: bytes, stream: int, flags: int = 0) -> bytes:
    """HEADERS and as many CONTINUATION frames as it takes."""
    pieces = [block[start:start + 16384] for start in range(0, len(block), 16384)]
    frames = b""
    for index, piece in enumerate(pieces):
        last = 4 if index == len(pieces) - 1 else 0
        frames += frame(1 if index == 0 else 9, last | (flags if index == 0 else 0), stream, piece)
    return frames


@pytest.mark.parametrize("payload", [b"", b"\x00\x01a\x01b", bytes([0]) + b"\x01a\x7f\x80\x7f" + b"b" * 16383],
                         ids=["empty", "small", "large"])
def test_T3_a_header_block_without_end(server, payload):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            before = server.resident_kib
            # Nine and not one more: whoever closes has not waited for the rest of the flood.
            attacker.send(frame(1, 0, 1, attacker.block(request())) + frame(9, 0, 1, payload[:16384]) * 9)
            attacker.until_end()
            assert server.resident_kib - before < GROWTH_KIB
        with Wire(server.port) as attacker:
            attacker.send(frame(1, 0, 1, attacker.block(request())) + frame(9, 0, 1, payload) * size(1000, 5000))
            attacker.until_end()
        one_line_each(server, "protocol_error", 2)


def stalls(server) -> list:
    return [line for line in server.lines() if "stall" in line["event"] or "stall" in line.get("reason", "")]


@pytest.mark.parametrize("pieces", [[frame(1, 0, 1, b"\x83")], [frame(1, 4, 1, b"\x83", length=200)],
                                    [frame(1, 0, 1, b"\x83"), frame(9, 0, 1, b"\x86"), frame(9, 0, 1, b"\x84")]],
                         ids=["no-end", "cut", "drop-by-drop"])
def test_T3_a_header_block_that_takes_too_long(start, pieces):
    server = start(header=0.5)
    with common_pass(server):
        attackers = [Wire(server.port) for _ in range(size(10, 50))]
        for attacker in attackers:
            attacker.settled()
            for piece in pieces:
                attacker.send(piece)
        for attacker in attackers:
            attacker.until_end()
            attacker.close()
        eventually(lambda: len(stalls(server)) >= len(attackers), "each is logged")
        assert len(stalls(server)) == len(attackers)


def test_T3_many_header_blocks_in_pieces_are_no_stall(start):
    """The end of what was read so far may lie within a block at every look, as long as blocks come to their end."""
    server = start(header=0.2)
    with Wire(server.port) as client:
        client.settled()
        first = client.block(request())
        client.send(frame(1, 4, 1, first) + wire.data(1, wire.echo(b"x"), end=True))
        for stream in range(3, 203, 2):
            whole = frame(1, 4, stream, client.block(request()))
            client.send(whole[:12])
            client.send(whole[12:] + wire.data(stream, wire.echo(b"x"), end=True))
            assert client.answer(stream).status == 0


def refused_softly(attacker: Wire, stream: int) -> None:
    """431, RESOURCE_EXHAUSTED, RST or the end of the connection."""
    answer = attacker.answers[stream]
    attacker._wait(lambda: answer.is_over or attacker.end is not None, "the stream is refused")
    if attacker.end is None and answer.reset is None:
        assert answer.status == 8 or answer.http == "431", answer


def test_T4_an_indexed_entry_repeated_8000_times(server):
    with common_pass(server):
        for _ in range(size(3, 20)):
            with Wire(server.port) as attacker:
                attacker.settled()
                opening = attacker.call(1, wire.echo(b"x"), request(wire.UNARY, ("bomb", "b" * 3900)))
                assert opening.status == 0
                before = server.resident_kib
                # 0xBE is the newest entry of the dynamic table.
                bomb = attacker.block(request()) + b"\xbe" * 8000
                attacker.send(frame(1, 5, 3, bomb))
                refused_softly(attacker, 3)
                assert server.resident_kib - before < GROWTH_KIB
                # The tables of both sides still agree.
                if attacker.end is None:
                    assert attacker.call(5, wire.echo(b"x")).status == 0


@pytest.mark.parametrize("fields", [
    b"".join(literal(b"a%d" % index, b"v") for index in range(10_000)),
    literal(b"big", b"v" * 65_536),
    literal(b"n" * 65_536, b"v"),
    literal(b"big", b"v" * 17_000),
    literal(b"", b"v"),
], ids=["10000-fields", "64-KiB-value", "64-KiB-name", "17-KB-value", "empty-name"])
def test_T4_header_lists_that_are_too_large(server, fields):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            before = server.resident_kib
            attacker.send(continuations(attacker.block(request()) + fields, 1, flags=1))
            refused_softly(attacker, 1)
            assert server.resident_kib - before < GROWTH_KIB


def test_T4_header_lists_between_the_limits_are_resource_exhausted(server):
    """8 KiB are advertised; up to 16 KiB the stream is answered, so that a client learns why."""
    with Wire(server.port) as client:
        client.settled()
        assert client.peer_settings[6] == 8192
        large = [(f"x-{index}", "v" * 900) for index in range(10)]
        answer = client.call(1, wire.echo(b"x"), request(wire.UNARY, *large))
        assert answer.status == 8
        assert client.call(3, wire.echo(b"x"), request(wire.UNARY, ("x-fits", "v" * 7000))).status == 0


def test_T4_oversized_lists_again_and_again(server):
    """Each is one reset that the peer made us send."""
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            fields = literal(b"big", b"v" * 16_300)
            stream = 1
            while attacker.end is None and stream < 2 * 600:
                attacker.send(continuations(attacker.block(request()) + fields, stream, flags=1))
                refused_softly(attacker, stream)
                stream += 2
            assert attacker.end is not None and stream // 2 <= 250
        one_line_each(server, "flood_resetSent", 1)


@pytest.mark.parametrize("block", [b"\x3f\xe1\xff\x03", b"\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"\xc0",
                                   b"\x40\x7f\xff\xff\xff\xff\xff\xff", b"\x00\x81\xff\x01v", b"\x80"],
                         ids=["table-of-64-KiB", "number-without-end", "index-of-nothing", "length-without-end",
                              "padding-of-huffman", "index-0"])
def test_T4_blocks_that_do_not_decode_end_the_connection(server, block):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            attacker.send(frame(1, 5, 1, block))
            attacker.until_end()
            assert attacker.goaway.error_code == wire.COMPRESSION_ERROR
        one_line_each(server, "protocol_error", 1)


def test_T4_a_client_that_offers_a_huge_table(server):
    with common_pass(server):
        with Wire(server.port, first_settings=((1, 0xFFFFFFFF),)) as attacker:
            attacker.settled()
            before = server.resident_kib
            for index in range(size(200, 2000)):
                answer = attacker.call(2 * index + 1, wire.echo(b"x"), request(f"/no.Such/{index}"))
                assert answer.status == 12
            assert server.resident_kib - before < GROWTH_KIB
        eventually(lambda: server.descriptor_count > 0, "it lives")
