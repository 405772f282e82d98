"""Servers and connections that end in good order (R4, R5)."""

import signal
import threading

import grpc
import pytest
from hyperframe.frame import GoAwayFrame, PingFrame

import wire
from target import Neighbour, Target, eventually, size
from wire import Wire, data, request

LAST_STREAM_MAX = 0x7FFFFFFF


def is_drain_ping(found) -> bool:
    return isinstance(found, PingFrame) and "ACK" not in found.flags


def test_R4_the_steps_of_a_graceful_stop(server):
    """GOAWAY(2^31-1), PING; a stream opened before the answer is served; GOAWAY(last), the streams finish, the end."""
    client = Wire(server.port, acknowledge=False)
    client.until(lambda: client.peer_settings, "SETTINGS arrive")
    client.send(wire.frame(4, 1))
    client.open(1, request(wire.UPLOAD))
    client.round_trip()
    server.signal(signal.SIGTERM)
    client.until(lambda: any(map(is_drain_ping, client.frames)), "the drain's PING comes")
    assert [found.last_stream_id for found in client.of(GoAwayFrame)] == [LAST_STREAM_MAX]
    kinds = [type(found) for found in client.frames if isinstance(found, GoAwayFrame) or is_drain_ping(found)]
    assert kinds == [GoAwayFrame, PingFrame]
    # The client did not know yet.
    assert client.call(3, wire.echo(b"late")).status == 0
    ping = next(filter(is_drain_ping, client.frames))
    client.send(wire.frame(6, 1, 0, ping.opaque_data))
    client.until(lambda: len(client.of(GoAwayFrame)) == 2, "the second GOAWAY comes")
    assert client.goaway.last_stream_id == 3 and client.goaway.error_code == wire.NO_ERROR
    assert client.end is None
    client.send(data(1, wire.echo(b"x"), end=True))
    assert client.answer(1).status == 0
    client.until_end()
    assert client.end == "closed"
    client.close()
    assert server.process.wait(wire.PATIENCE_SECONDS) == 0


def test_R4_no_new_connection_while_it_stops(server):
    client = Wire(server.port)
    client.open(1, request(wire.UPLOAD))
    client.round_trip()
    server.signal(signal.SIGTERM)
    client.until(lambda: client.goaway, "GOAWAY comes")
    with pytest.raises(ConnectionRefusedError):
        Wire(server.port)
    client.send(data(1, wire.echo(b"x"), end=True))
    assert client.answer(1).status == 0
    client.close()
    assert server.process.wait(wire.PATIENCE_SECONDS) == 0


def test_R4_two_instances_restarted_in_turn_lose_no_call(tmp_path):
    """Behind a client that knows both, with several calls under way at any time."""
    targets = [Target(tmp_path), Target(tmp_path)]
    address = "ipv4:" + ",".join(f"127.0.0.1:{target.port}" for target in targets)
    # gRPC's own retry of what a server has not processed stays on: that is its promise, not a second try of ours.
    options = [("grpc.lb_policy_name", "round_robin"), ("grpc.initial_reconnect_backoff_ms", 50),
               ("grpc.min_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200)]
    failures, ended, count = [], threading.Event(), [0]
    with grpc.insecure_channel(address, options=options) as channel:
        call = channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)

        def go_on():
            while not ended.is_set():
                try:
                    call(b"\x0a\x01a", timeout=wire.PATIENCE_SECONDS, wait_for_ready=True)
                except grpc.RpcError as error:
                    failures.append(f"{error.code().name}: {error.details()}")
                count[0] += 1

        threads = [threading.Thread(target=go_on, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(size(4, 50)):
            old = targets[turn % 2]
            wanted = count[0] + 50
            eventually(lambda: count[0] >= wanted, "50 calls go by")
            # Both are known to serve before one stops.
            for target in targets:
                eventually(lambda: target.descriptor_count >= 1, "it lives")
            old.signal(signal.SIGTERM)
            assert old.process.wait(wire.PATIENCE_SECONDS) == 0
            targets[turn % 2] = Target(tmp_path, port=old.port)
        wanted = count[0] + 50
        eventually(lambda: count[0] >= wanted, "50 calls go by")
        ended.set()
        for thread in threads:
            thread.join()
    for target in targets:
        target.stop()
    assert failures == []


def test_R5_connections_of_an_age_lose_no_call(start):
    server = start(age=0.3, age_grace=20)
    with Neighbour(f"127.0.0.1:{server.port}", sends_again=True) as neighbour:
        lived = []
        for _ in range(size(5, 50)):
            with Wire(server.port) as watch:
                watch.until(lambda: watch.goaway and watch.goaway.last_stream_id != LAST_STREAM_MAX, "it is too old")
                assert watch.goaway.error_code == wire.NO_ERROR
                lived.append(watch.goaway.additional_data)
            neighbour.more(10)
    assert neighbour.failures == []
    assert set(lived) == {b"max_age"}
    assert server.all_incidents() == (0, 0)


def test_R5_a_call_under_way_outlives_its_connections_age(start):
    server = start(age=0.2, age_grace=30)
    with Wire(server.port) as client:
        client.open(1, request(wire.UPLOAD))
        client.until(lambda: client.goaway and client.goaway.last_stream_id == 1, "it is too old")
        client.send(data(1, wire.echo(b"x"), end=True))
        assert client.answer(1).status == 0
        client.until_end()


def test_R5_a_call_that_never_ends_is_cut_off_after_the_grace(start):
    server = start(age=0.2, age_grace=0.2)
    with Wire(server.port) as client:
        client.open(1, request(wire.UPLOAD))
        client.until_end()
    eventually(lambda: server.tally()["running"] == 0, "its handler is cancelled")
