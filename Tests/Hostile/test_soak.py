"""Many calls and many connections in the memory of few (R9)."""

import grpc
import wire
from target import common_pass, size

#: Growth for each 1,000 calls after the warm-up.
SLOPE_KIB = 1
#: RSS moves by pages and by the allocator's whims; this much is no slope.
NOISE_KIB = 256


def test_R9_rpc_soak(server):
    calls, warm = size(5000, 100_000), 2000
    payload = wire.echo(b"s" * 1024)[5:]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)
        for _ in range(warm):
            assert call(payload, timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == payload
        before = server.resident_kib
        for _ in range(calls):
            assert call(payload, timeout=wire.PATIENCE_SECONDS) == payload
        assert server.resident_kib - before <= calls / 1000 * SLOPE_KIB + NOISE_KIB


def test_R9_channel_soak(server):
    payload = wire.echo(b"s" * 1024)[5:]

    def once():
        # A pool of its own, or grpcio would share one connection among channels.
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options) as channel:
            call = channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)
            assert call(payload, timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == payload

    with common_pass(server):
        for _ in range(50):
            once()
        before = server.resident_kib
        for _ in range(size(200, 1000)):
            once()
        assert server.resident_kib - before <= NOISE_KIB


def test_R9_connections_that_come_and_go_by_hand(server):
    with common_pass(server):
        for turn in range(2):
            before = server.resident_kib
            for _ in range(size(300, 3000)):
                with wire.Wire(server.port) as client:
                    assert client.call(1, wire.echo(b"x")).status == 0
        assert server.resident_kib - before <= NOISE_KIB
    assert server.all_incidents() == (0, 0)
