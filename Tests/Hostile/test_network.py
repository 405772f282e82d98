"""Networks that cut, delay, drop and fall silent, between grpcio and the server (R6, and what every row expects)."""

import threading

import grpc
import pytest

import wire
from proxy import FaultProxy
from target import common_pass, eventually, size


@pytest.fixture
def proxy(server):
    with FaultProxy(server.port) as between:
        yield between


def channel_through(proxy, **options):
    named = [(f"grpc.{name}", value) for name, value in options.items()]
    return grpc.insecure_channel(f"127.0.0.1:{proxy.port}", options=named)


def unary(channel):
    return channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)


def upload(channel):
    return channel.stream_unary("/echo.Echo/Upload", lambda raw: raw, lambda raw: raw)


def exchange(channel):
    return channel.stream_stream("/echo.Echo/Exchange", lambda raw: raw, lambda raw: raw)


def body(payload: bytes) -> bytes:
    return wire.echo(payload)[5:]


class Unending:
    """Requests of a stream that begins and does not end by itself."""

    def __init__(self):
        self._ended = threading.Event()

    def messages(self):
        yield body(b"first")
        self._ended.wait()

    def end(self):
        self._ended.set()


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_R6_bytes_that_arrive_in_pieces(server, proxy, piece):
    """No edge of a frame may depend on the edge of a packet."""
    proxy.piece = piece
    with common_pass(server), channel_through(proxy) as channel:
        for index in range(size(5, 100)):
            payload = body(bytes([index]) * 3000)
            assert unary(channel)(payload, timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == payload
        sent = [body(b"x" * 500)] * 10
        assert list(exchange(channel)(iter(sent), timeout=wire.PATIENCE_SECONDS)) == sent


def test_R6_a_slow_line(server, proxy):
    proxy.piece, proxy.pause = 2000, 0.005
    with common_pass(server), channel_through(proxy) as channel:
        payload = body(b"s" * 100_000)
        for _ in range(size(2, 20)):
            assert unary(channel)(payload, timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == payload


@pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
def test_R6_a_line_cut_in_the_middle_of_calls(server, proxy, with_reset):
    """The handlers are cancelled, the waiting calls fail as UNAVAILABLE, and the next call is served."""
    with common_pass(server), channel_through(proxy, initial_reconnect_backoff_ms=50, min_reconnect_backoff_ms=50,
                                              max_reconnect_backoff_ms=100, enable_retries=0) as channel:
        for _ in range(size(3, 50)):
            never = Unending()
            calls = [upload(channel).future(never.messages(), timeout=wire.PATIENCE_SECONDS, wait_for_ready=True)
                     for _ in range(10)]
            eventually(lambda: server.tally()["running"] == 10, "ten handlers wait")
            proxy.cut(with_reset)
            for call in calls:
                assert call.code() == grpc.StatusCode.UNAVAILABLE
            never.end()
            eventually(lambda: server.tally()["running"] == 0, "their handlers are cancelled")
            assert unary(channel)(body(b"x"), timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == body(b"x")


def test_R6_a_peer_that_vanished_is_gone_at_the_latest_with_its_connections_age(start):
    """It sent no end and answers nothing; a stream of its is open and has nothing to send."""
    server = start(age=0.5, age_grace=0.3)
    with FaultProxy(server.port) as proxy, channel_through(proxy) as channel:
        never = Unending()
        call = upload(channel).future(never.messages(), timeout=wire.PATIENCE_SECONDS, wait_for_ready=True)
        eventually(lambda: server.tally()["started"] >= 1, "its handler waits")
        proxy.is_silent = True
        eventually(lambda: server.tally()["running"] == 0, "its handler is cancelled")
        proxy.cut(with_reset=True)
        assert call.code() == grpc.StatusCode.UNAVAILABLE
        never.end()


def test_R6_a_peer_that_vanished_with_bytes_unsent_is_a_stall(start):
    server = start(write=0.4)
    with FaultProxy(server.port) as proxy, channel_through(proxy) as channel:
        answers = channel.unary_stream("/echo.Echo/Repeat", lambda raw: raw, lambda raw: raw)(
            body(b"v" * 10_000), timeout=wire.PATIENCE_SECONDS, wait_for_ready=True)
        next(answers)
        proxy.is_silent = True
        eventually(lambda: server.tally()["running"] == 0, "its handler is cancelled")
        proxy.cut(with_reset=True)


def test_R6_connections_cut_while_they_begin(server, proxy):
    with common_pass(server):
        for length in range(0, 60, size(6, 1)):
            attacker = wire.Wire(proxy.port, greet=False)
            attacker.send((wire.PREFACE + wire.settings((3, 100), (4, 65535)))[:length])
            proxy.cut(with_reset=length % 2 == 0)
            attacker.close()
    assert server.all_incidents() == (0, 0)
