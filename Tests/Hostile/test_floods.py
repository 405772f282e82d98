"""Frames that cost the server more than the peer (T1, T2, T5)."""

import struct

import pytest
from hyperframe.frame import PingFrame, RstStreamFrame

import wire
from target import common_pass, eventually, one_line_each, size
from wire import Wire, data, frame, ping, request, reset, settings, window_update

#: A token bucket's burst for resets, and what proof.md grants on top.
RESETS_MAX = 250
STREAMS_MAX = 100


def ended_calmly(connection: Wire) -> None:
    """The connection is over; where GOAWAY came through it says why."""
    connection.until_end()
    if connection.goaway:
        assert connection.goaway.error_code == wire.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("path", [wire.UNARY, wire.UPLOAD])
@pytest.mark.parametrize("between", ["nothing", "data"])
def test_T1_streams_opened_and_reset_without_end(server, path, between):
    attackers, count = 5, size(1000, 10_000)
    with common_pass(server):
        before = server.tally()["started"]
        for _ in range(attackers):
            with Wire(server.port) as attacker:
                attacker.settled()
                first, again = attacker.block(request(path)), attacker.block(request(path))
                burst = b"".join(
                    frame(1, 4, stream, first if stream == 1 else again)
                    + (data(stream, wire.echo(b"x")) if between == "data" else b"") + reset(stream)
                    for stream in range(1, 2 * count, 2))
                attacker.send(burst)
                ended_calmly(attacker)
                if attacker.goaway:
                    assert (attacker.goaway.last_stream_id + 1) // 2 <= RESETS_MAX
        eventually(lambda: server.tally()["running"] == 0, "the cancelled handlers have stopped")
        assert server.tally()["started"] - before <= attackers * RESETS_MAX
        assert server.tally()["peak"] <= STREAMS_MAX
        one_line_each(server, "flood_resetReceived", attackers)


def overflow(attacker, stream):
    return window_update(stream, 0x7FFFFFFF)


def no_increment(attacker, stream):
    return window_update(stream, 0)


def data_after_end(attacker, stream):
    return data(stream, end=True) + data(stream, b"late")


def headers_after_end(attacker, stream):
    return data(stream, end=True) + frame(1, 5, stream, attacker.block([("late", "1")]))


def small_priority(attacker, stream):
    return frame(2, 0, stream, bytes(4))


def priority_on_itself(attacker, stream):
    return frame(2, 0, stream, struct.pack(">IB", stream, 15))


def too_much_content(attacker, stream):
    return data(stream, b"12345678")


def too_little_content(attacker, stream):
    return data(stream, b"1", end=True)


def trailers_with_pseudo_header(attacker, stream):
    return frame(1, 5, stream, attacker.block([(":path", "/")]))


@pytest.mark.parametrize("make", [overflow, no_increment, data_after_end, headers_after_end, small_priority,
                                  priority_on_itself, too_much_content, too_little_content,
                                  trailers_with_pseudo_header])
def test_T2_a_server_made_to_reset_its_own_streams(server, make):
    """In steps, each waiting until the server has read the one before: what it bears is counted, not timed."""
    step, most = 10, size(600, 2000)
    length = {too_much_content: "4", too_little_content: "400"}.get(make)
    headers = request(wire.UPLOAD, *([("content-length", length)] if length else []))
    with common_pass(server):
        server.tally()
        with Wire(server.port) as attacker:
            attacker.settled()
            stream = 1
            while attacker.end is None and stream < 2 * most:
                for _ in range(step):
                    attacker.send(frame(1, 4, stream, attacker.block(headers)) + make(attacker, stream))
                    stream += 2
                expected = len(attacker.of(RstStreamFrame))
                attacker._wait(lambda: attacker.end is not None or len(attacker.of(RstStreamFrame)) >= expected
                               and attacker.answers.get(stream - 2) is not None
                               and attacker.answers[stream - 2].is_over, "the last stream is over")
            assert attacker.end is not None, f"{stream // 2} streams, {len(attacker.of(RstStreamFrame))} resets"
            wrong = [found for found in attacker.of(RstStreamFrame) if found.error_code != wire.NO_ERROR]
            assert len(wrong) <= RESETS_MAX
        assert server.tally()["peak"] <= STREAMS_MAX
        eventually(lambda: server.all_incidents()[0] >= 1, "the end is logged")
        assert server.all_incidents() == (1, 1)


def pings(attacker, number):
    return ping() * number


def some_settings(attacker, number):
    return settings((3, 100)) * number


def empty_settings(attacker, number):
    return settings() * number


def priorities(attacker, number):
    return b"".join(frame(2, 0, 2 * index + 101, struct.pack(">IB", 0, 15)) for index in range(number))


def empty_data(attacker, number):
    return frame(1, 4, 1, attacker.block(request(wire.UPLOAD))) + data(1) * number


def padding_only(attacker, number):
    return frame(1, 4, 1, attacker.block(request(wire.UPLOAD))) + frame(0, 8, 1, b"\x00") * number


def window_updates(attacker, number):
    return window_update(0, 1) * number


def stream_window_updates(attacker, number):
    return frame(1, 4, 1, attacker.block(request(wire.UPLOAD))) + window_update(1, 1) * number


FLOODS = {pings: "flood_keepalive", some_settings: "flood_settings", empty_settings: "flood_settings",
          priorities: "flood_priority", empty_data: "flood_emptyData", padding_only: "flood_emptyData",
          window_updates: "flood_windowUpdate", stream_window_updates: "flood_windowUpdate"}


@pytest.mark.parametrize("is_reading", [True, False], ids=["reading", "deaf"])
@pytest.mark.parametrize("make", FLOODS)
def test_T5_a_flood_of_small_frames(server, make, is_reading):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            attacker.is_deaf = not is_reading
            attacker.send(make(attacker, size(5000, 20_000)))
            attacker.is_deaf = False
            ended_calmly(attacker)
            if make is pings and attacker.goaway:
                assert attacker.goaway.additional_data == b"too_many_pings"
            answered = sum("ACK" in found.flags for found in attacker.of(PingFrame))
            assert answered <= 40
        one_line_each(server, FLOODS[make], 1)


def test_T5_acknowledgements_nobody_asked_for(server):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            attacker.send(frame(4, 1) * 100)
            attacker.until_end()
            assert attacker.goaway is None or attacker.goaway.error_code == wire.PROTOCOL_ERROR
        one_line_each(server, "protocol_error", 1)


def test_T5_pings_between_answers_are_a_measurement_not_a_flood(server):
    """gRPC clients measure the line with a PING for each burst of data."""
    with common_pass(server):
        with Wire(server.port) as client:
            for index in range(100):
                client.send(ping())
                assert client.call(2 * index + 1, wire.echo(b"m" * 100)).status == 0
            assert client.goaway is None
