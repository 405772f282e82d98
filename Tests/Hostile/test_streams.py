"""More streams than allowed, and uploads that nobody takes (T8, T9)."""

import pytest

import wire
from target import common_pass, one_line_each, size
from wire import Wire, data, request, window_update

STREAMS_MAX = 100
#: What a stopped sink takes in: the stream's window of 256 KiB, half of that in waiting messages, 64 KiB unsent, and a
#: chunk for each of these.
TAKEN_MAX = (256 + 128 + 64 + 3 * 64) << 10


def test_T8_streams_above_the_limit_before_it_is_known(server):
    """The peer has not acknowledged our SETTINGS: it cannot know. The excess is refused, which is safe to try again."""
    with common_pass(server):
        with Wire(server.port, acknowledge=False) as client:
            client.until(lambda: client.peer_settings, "SETTINGS arrive")
            assert client.peer_settings[3] == STREAMS_MAX
            for index in range(150):
                client.open(2 * index + 1, request(wire.UPLOAD))
            for index in range(100, 150):
                assert client.answer(2 * index + 1).reset == wire.REFUSED_STREAM
            for index in range(100):
                client.send(data(2 * index + 1, wire.echo(b"x"), end=True))
            for index in range(100):
                assert client.answer(2 * index + 1).status == 0


def test_T8_streams_above_the_limit_of_a_peer_that_knows_it(server):
    """RFC 9113 5.1.2 asks for a stream error; 100 calls must not suffer for the 101st."""
    with common_pass(server):
        with Wire(server.port) as client:
            client.settled()
            for index in range(150):
                client.open(2 * index + 1, request(wire.UPLOAD))
            for index in range(100, 150):
                assert client.answer(2 * index + 1).reset == wire.REFUSED_STREAM
            for index in range(100):
                client.send(data(2 * index + 1, wire.echo(b"x"), end=True))
            for index in range(100):
                assert client.answer(2 * index + 1).status == 0


def test_T8_a_client_that_cannot_know_the_limit_may_pass_it_by_far(server):
    """gRPC clients open what waits for them before our SETTINGS arrive."""
    with common_pass(server):
        with Wire(server.port, acknowledge=False) as client:
            for index in range(600):
                client.open(2 * index + 1, request(wire.UPLOAD))
            for index in range(STREAMS_MAX, 600):
                assert client.answer(2 * index + 1).reset == wire.REFUSED_STREAM
            client.send(data(1, wire.echo(b"x"), end=True))
            assert client.answer(1).status == 0


def test_T8_a_peer_that_knows_the_limit_and_goes_on_passing_it(server):
    with common_pass(server):
        with Wire(server.port) as attacker:
            attacker.settled()
            attacker.round_trip()
            stream = 1
            while attacker.end is None and stream < 2 * 2000:
                attacker.open(stream, request(wire.UPLOAD))
                stream += 2
            attacker.until_end()
            assert attacker.goaway is None or attacker.goaway.error_code == wire.ENHANCE_YOUR_CALM
        one_line_each(server, "flood_resetSent", 1)


def test_T8_streams_that_were_reset_count_until_their_handlers_end(server):
    with common_pass(server):
        server.tally()
        with Wire(server.port) as client:
            client.settled()
            for index in range(150):
                client.open(2 * index + 1, request(wire.UPLOAD), more=wire.reset(2 * index + 1))
            client.round_trip()
        assert server.tally()["peak"] <= STREAMS_MAX


class Uploader:
    """Sends messages as far as the windows allow."""

    def __init__(self, connection: Wire, stream: int, payload: bytes):
        self.connection, self.stream, self.payload = connection, stream, payload
        self.sent = 0
        self.credit = connection.peer_settings[4]
        self._rest = b""
        connection.stream_windows.setdefault(stream, 0)

    def push(self, bytes_max: int) -> bool:
        """Sends what it may; false when the windows are shut."""
        room = min(self.credit + self.connection.stream_windows[self.stream] - self.sent, self.connection.window, 16384,
                   bytes_max - self.sent)
        if room <= 0:
            return False
        while len(self._rest) < room:
            self._rest += self.payload
        self.connection.send(data(self.stream, self._rest[:room]))
        self._rest = self._rest[room:]
        self.sent += room
        self.connection.window -= room
        return True

    def finish(self) -> None:
        """The rest of the last message, and the end."""
        total = self.sent + len(self._rest)
        while self.sent < total:
            if not self.push(total):
                had = self.sent
                self.connection.until(lambda: self.push(total) or self.sent > had, "the windows open again")
        self.connection.send(data(self.stream, end=True))


@pytest.mark.parametrize("payload", [wire.echo(b"u" * 65_536), wire.echo(b"u" * 10), wire.message()],
                         ids=["64-KiB", "10-bytes", "empty"])
def test_T9_a_sink_that_stands_still_stops_the_source(server, payload):
    """The handler waits to write, since the peer's window is shut, and so it reads no more."""
    with common_pass(server):
        with Wire(server.port, first_settings=((4, 0),)) as client:
            client.settled()
            client.until(lambda: client.window > 65535, "the connection's window is announced")
            before = server.resident_kib
            client.open(1, request(wire.EXCHANGE))
            source = Uploader(client, 1, payload)
            shut = 0
            while shut < 3:
                while source.push(64 << 20):
                    shut = 0
                client.round_trip()
                shut += 1
            assert source.sent <= TAKEN_MAX
            assert server.resident_kib - before < 4096
            # What was taken comes back once the window opens, and then the rest.
            total = size(8 << 20, 1 << 30 if len(payload) > 1024 else 32 << 20)
            client.send(window_update(1, 0x7FFFFFFF) + window_update(0, 0x7FFFFFFF - 65535))
            highest, taken = 0, 0
            while source.sent < total:
                if not source.push(total):
                    client._wait(lambda: source.push(total) or client.end, "the windows open again")
                    assert client.end is None, client.summary()
                if source.sent - taken > 1 << 20:
                    taken = source.sent
                    highest = max(highest, server.resident_kib)
                    client.frames.clear()
                    client.answers[1].body = b""
            if total < 1 << 25:
                source.finish()
                assert client.answer(1).status == 0
            assert highest - before < 8192


def test_T9_a_source_that_ignores_the_window(server):
    with common_pass(server):
        with Wire(server.port, first_settings=((4, 0),)) as attacker:
            attacker.settled()
            before = server.resident_kib
            attacker.open(1, request(wire.EXCHANGE))
            attacker.send(data(1, wire.echo(b"u" * 8000)) * size(200, 2000))
            attacker._wait(lambda: attacker.end is not None or 1 in attacker.answers and attacker.answers[1].is_over,
                           "it is stopped")
            assert attacker.end is not None or attacker.answers[1].reset == wire.FLOW_CONTROL_ERROR
            assert server.resident_kib - before < 8192


def test_T9_an_upload_of_any_size_in_the_same_memory(server):
    total = size(32 << 20, 1 << 30)
    with Wire(server.port) as client:
        client.settled()
        client.until(lambda: client.window > 65535, "the connection's window is announced")
        client.open(1, request(wire.UPLOAD))
        source = Uploader(client, 1, wire.echo(b"u" * 65_536))
        highest, first = 0, 0
        while source.sent < total:
            if not source.push(total):
                client._wait(lambda: source.push(total) or client.end, "the windows open again")
                assert client.end is None, client.summary()
            if source.sent % (1 << 20) < 16384:
                first = first or server.resident_kib
                highest = max(highest, server.resident_kib)
        source.finish()
        assert client.answer(1).status == 0
        assert highest - first < 4096
