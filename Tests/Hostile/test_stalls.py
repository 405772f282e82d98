"""Peers that stop: while they connect, in the middle of a call, or before what they asked for (T6, T7)."""

import pytest
from hyperframe.frame import DataFrame

import wire
from target import common_pass, eventually, one_line_each, size
from wire import PREFACE, Wire, data, frame, request, settings, window_update

#: All attackers come from one address; the limit for one address has its own test.
MANY = 1000
STREAMS = 100
#: What one connection may hold: 64 KiB, one message more and the request for each stream, and its own buffer.
UNSENT_KIB = STREAMS * (64 + 16 + 16) + 2048


@pytest.mark.parametrize("opening", [b"", PREFACE[:10], PREFACE, PREFACE + settings()[:5],
                                     PREFACE + frame(6, 0, 0, bytes(8))],
                         ids=["silence", "half-preface", "preface-only", "half-settings", "no-settings"])
def test_T6_a_connection_that_does_not_begin(start, opening):
    server = start(handshake=0.5, connections_per_address=MANY)
    with common_pass(server):
        attackers = [Wire(server.port, greet=False) for _ in range(size(40, 200))]
        for attacker in attackers:
            attacker.send(opening)
        for attacker in attackers:
            attacker.until_end()
            attacker.close()
        reason = "protocol_error" if opening.endswith(bytes(8)) else "handshake_timeout"
        one_line_each(server, reason, len(attackers))


@pytest.mark.parametrize("is_answering", [True, False], ids=["polite", "mute"])
def test_T6_R5_an_idle_connection_is_told_and_ended(start, is_answering):
    """A peer that answers nothing does not keep its connection by that."""
    server = start(idle=0.3, age_grace=0.3)
    attackers = [Wire(server.port, acknowledge=is_answering) for _ in range(size(20, 60))]
    for attacker in attackers:
        attacker.until_end()
        attacker.close()
        assert attacker.goaway.error_code == wire.NO_ERROR
        if is_answering:
            assert attacker.goaway.additional_data == b"max_idle"
    assert server.all_incidents() == (0, 0)


@pytest.mark.parametrize("path", [wire.UNARY, wire.UPLOAD])
def test_T6_a_body_that_stops_lives_no_longer_than_its_connection_may(start, path):
    server = start(age=0.5, age_grace=0.3, connections_per_address=MANY)
    attackers = [Wire(server.port) for _ in range(size(20, 200))]
    for attacker in attackers:
        attacker.open(1, request(path), more=data(1, wire.echo(b"x" * 100)[:20]))
    for attacker in attackers:
        attacker.until_end()
        attacker.close()
    eventually(lambda: server.tally()["running"] == 0, "no handler waits any more")


def test_T6_a_body_that_stops_ends_at_its_deadline(server):
    with common_pass(server):
        with Wire(server.port) as attacker:
            for index in range(STREAMS):
                stream = 2 * index + 1
                attacker.open(stream, request(wire.UPLOAD, ("grpc-timeout", "200m")), more=data(stream, b"\x00"))
            for index in range(STREAMS):
                assert attacker.answer(2 * index + 1).status == 4


def test_T6_more_connections_than_one_address_may_have(start):
    server = start(connections_per_address=10)
    with common_pass(server):
        attackers = [Wire(server.port) for _ in range(60)]
        for attacker in attackers:
            attacker._wait(lambda: attacker.end is not None or attacker.peer_settings, "it is taken or not")
        taken = [attacker for attacker in attackers if attacker.end is None]
        assert len(taken) <= 10
        for attacker in attackers:
            attacker.close()
        eventually(lambda: server.lines("connection_refused"), "the refusal is logged")
    # Those that were taken have gone, so a new one has room.
    assert len(server.lines("connection_refused")) == 1
    assert server.tally()["too_many_connections"] == len(attackers) - len(taken)


def repeat(connection: Wire, number: int = STREAMS, message_bytes: int = 16_000) -> None:
    """`number` streams that each ask for messages without end; the first window takes the requests."""
    for index in range(number):
        connection.until(lambda: connection.window >= message_bytes + 100, "the connection's window is open")
        payload = wire.echo(b"r" * message_bytes)
        connection.window -= len(payload)
        parts = [payload[start:start + 16000] for start in range(0, len(payload), 16000)]
        stream = 2 * index + 1
        connection.open(stream, request(wire.REPEAT), more=b"".join(
            data(stream, part, end=part is parts[-1]) for part in parts))


def is_cut_off(attacker: Wire) -> bool:
    """Its streams are reset, or it is ended itself."""
    return attacker.end is not None or bool(attacker.answers) and all(
        answer.is_over for answer in attacker.answers.values())


def few_lines(server) -> None:
    """A stall is logged, and not once for each of its streams."""
    def count() -> int:
        return sum("stall" in line["event"] or "stall" in line.get("reason", "") for line in server.lines())
    eventually(lambda: count() >= 1, "the stall is logged")
    assert count() <= 5


@pytest.mark.parametrize("window", [0, 1])
def test_T7_a_window_that_stays_shut(start, window):
    server = start(write=0.4)
    empty = server.resident_kib

    def attack():
        with Wire(server.port, first_settings=((4, window),)) as attacker:
            attacker.settled()
            repeat(attacker)
            assert server.resident_kib - empty < UNSENT_KIB + 8192
            attacker._wait(lambda: is_cut_off(attacker), "the streams are cut off")
            assert sum(len(found.data) for found in attacker.of(DataFrame)) <= STREAMS * window
        eventually(lambda: server.tally()["running"] == 0, "the producers are cancelled")

    # The first leaves free memory between what is held; the second finds room there.
    attack()
    few_lines(server)
    with common_pass(server):
        attack()


def test_T7_producers_wait_for_the_window(server):
    """Nothing is written ahead beyond the mark, and a window that opens gets what it asks for."""
    with Wire(server.port, first_settings=((4, 0),)) as client:
        client.settled()
        repeat(client, 1, 1000)
        client.round_trip()
        assert client.of(DataFrame) == []
        for credit in (1, 10, 100_000):
            had = len(client.answers[1].body)
            client.send(window_update(1, credit) + (window_update(0, credit) if credit > 1000 else b""))
            # The connection's own window of 64 KiB - 1 is what else bounds it.
            client.until(lambda: len(client.answers[1].body) - had >= min(credit, 65000), "the credit is used")
            client.round_trip()
            assert len(client.answers[1].body) - had <= credit
        client.send(wire.reset(1))
        eventually(lambda: server.tally()["running"] == 0, "the producer is cancelled")


def test_T7_a_window_that_shrinks_below_nothing(start):
    server = start(write=0.4)
    with common_pass(server):
        with Wire(server.port, first_settings=((4, 60_000),)) as attacker:
            attacker.settled()
            repeat(attacker, 1)
            attacker.until(lambda: len(attacker.answers[1].body) >= 60_000, "the first window is used")
            attacker.send(settings((4, 0)))
            attacker.round_trip()
            had = len(attacker.answers[1].body)
            attacker.send(window_update(1, 30_000))
            attacker.round_trip()
            assert len(attacker.answers[1].body) == had
            attacker._wait(lambda: is_cut_off(attacker), "the stream is cut off")
        few_lines(server)


def test_T7_a_reader_that_stops_reading(start):
    """Its windows are wide open, but it takes nothing from the socket."""
    server = start(write=0.4)
    empty = server.resident_kib

    def attack():
        known = len(server.lines("connection_ended"))
        with Wire(server.port, first_settings=((4, 0x7FFFFFFF),)) as attacker:
            attacker.settled()
            attacker.send(window_update(0, 0x7FFFFFFF - 65535))
            repeat(attacker)
            attacker.is_deaf = True
            eventually(lambda: len(server.lines("connection_ended")) > known, "it is cut off")
            assert server.resident_kib - empty < UNSENT_KIB + 8192
        eventually(lambda: server.tally()["running"] == 0, "the producers are cancelled")

    attack()
    with common_pass(server):
        attack()
    one_line_each(server, "stalled", 2)


def test_T7_a_slow_reader_that_does_read_is_served(start):
    server = start(write=0.3)
    with Wire(server.port, first_settings=((4, 1000),)) as client:
        client.settled()
        repeat(client, 1, 5000)
        # Longer than any number of periods: the end of the test is a number of bytes.
        while len(client.answers[1].body) < 60_000:
            had = len(client.answers[1].body)
            client.send(window_update(1, 500))
            client.until(lambda: len(client.answers[1].body) > had, "it gives")
        assert client.end is None
