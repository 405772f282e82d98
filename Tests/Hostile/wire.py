"""One HTTP/2 connection driven frame by frame: it sends what it is told, right or wrong, and keeps what comes back."""

import collections
import select
import socket
import struct
import time
from dataclasses import dataclass, field

import hpack
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import (ContinuationFrame, DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame,
                              RstStreamFrame, SettingsFrame, WindowUpdateFrame)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: No condition that a test waits for takes this long, whatever the machine does; it bounds a hang.
PATIENCE_SECONDS = 60

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED = range(6)
FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM = range(6, 12)

UNARY, UPLOAD, EXCHANGE, REPEAT = (f"/echo.Echo/{name}" for name in ("Unary", "Upload", "Exchange", "Repeat"))


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"", length: int | None = None) -> bytes:
    """A frame as bytes, valid or not."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def ping(payload: bytes = bytes(8)) -> bytes:
    return frame(6, 0, 0, payload)


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(3, 0, stream, struct.pack(">I", code))


def window_update(stream: int, increment: int) -> bytes:
    return frame(8, 0, stream, struct.pack(">I", increment))


def settings(*pairs: tuple) -> bytes:
    return frame(4, 0, 0, b"".join(struct.pack(">HI", number, value) for number, value in pairs))


def data(stream: int, payload: bytes = b"", end: bool = False) -> bytes:
    return frame(0, 1 if end else 0, stream, payload)


def message(payload: bytes = b"", flag: int = 0, length: int | None = None) -> bytes:
    """A gRPC message, valid or not."""
    return bytes([flag]) + struct.pack(">I", len(payload) if length is None else length) + payload


def echo(payload: bytes) -> bytes:
    """`EchoMsg { bytes payload = 1; }` behind its frame header."""
    size, number = b"", len(payload)
    while number > 0x7F:
        size, number = size + bytes([number & 0x7F | 0x80]), number >> 7
    return message(b"\x0a" + size + bytes([number]) + payload)


def request(path: str = UNARY, *extra: tuple, without: tuple = (), **replaced: str) -> list:
    """The header list of a call; `replaced` by name with `_` for `-`, pseudo-headers without their colon."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
              "content-type": "application/grpc", "te": "trailers"}
    for name, value in replaced.items():
        fields[f":{name}" if f":{name}" in fields else name.replace("_", "-")] = value
    return [(name, value) for name, value in fields.items() if name not in without] + list(extra)


@dataclass
class Answer:
    """What came back on one stream."""

    blocks: list = field(default_factory=list)
    body: bytes = b""
    reset: int | None = None
    is_ended: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_ended or self.reset is not None

    def header(self, name: str) -> str | None:
        """From the last block that has it: trailers before headers."""
        for block in reversed(self.blocks):
            for key, value in block:
                if key == name:
                    return value
        return None

    @property
    def status(self) -> int | None:
        """gRPC's."""
        text = self.header("grpc-status")
        return None if text is None else int(text)

    @property
    def http(self) -> str | None:
        return self.header(":status")


class Wire:
    """`is_deaf` stops reading. `end` is None, then "closed" or "reset"."""

    def __init__(self, port: int, greet: bool = True, first_settings: tuple = (), context=None,
                 acknowledge: bool = True):
        raw = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(raw, server_hostname="localhost") if context else raw
        self.socket.setblocking(False)
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.frames, self.answers = [], collections.defaultdict(Answer)
        self.end = None
        self.is_deaf = False
        self.acknowledges = acknowledge and greet
        self.peer_settings = {}
        #: Our SETTINGS sent, and how many of them the server has acknowledged.
        self.asked = 1 if greet else 0
        self.acknowledged = 0
        self.window = 65535
        self.stream_windows = {}
        self._received = b""
        self._fragment = b""
        self._replies = b""
        if greet:
            self.send(PREFACE + settings(*first_settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Sending

    def send(self, bytes_to_send: bytes) -> int:
        """Sends and, unless deaf, reads meanwhile. How much went out: less than all once the peer has closed, or when
        deaf and the peer takes no more."""
        rest = memoryview(bytes_to_send)
        until = time.monotonic() + PATIENCE_SECONDS
        while rest and self.end is None:
            readers = [] if self.is_deaf else [self.socket]
            readable, writable, _ = select.select(readers, [self.socket], [], 2 if self.is_deaf else PATIENCE_SECONDS)
            if readable:
                self._read()
            if writable and self.end is None:
                try:
                    rest = rest[self.socket.send(rest[:1 << 18]):]
                except (BlockingIOError, InterruptedError):
                    pass
                except OSError:
                    self._ended_by_send()
            if self.is_deaf and not writable:
                break
            assert time.monotonic() < until, "the peer neither reads nor closes"
        self._send_replies()
        return len(bytes_to_send) - len(rest)

    def _ended_by_send(self) -> None:
        if self.is_deaf:
            self.end = "reset"
            return
        while self.end is None:
            if not self._read() and self.end is None:
                self.end = "reset"

    def block(self, headers: list) -> bytes:
        return self.encoder.encode(headers)

    def open(self, stream: int, headers: list, end: bool = False, more: bytes = b"") -> None:
        """HEADERS in one frame, then `more`."""
        self.send(frame(1, 4 | (1 if end else 0), stream, self.block(headers)) + more)

    def call(self, stream: int, payload: bytes, headers: list | None = None) -> Answer:
        """A whole unary call with this body; waits for its answer."""
        self.open(stream, headers or request(), more=data(stream, payload, end=True))
        return self.answer(stream)

    # Receiving

    def _read(self) -> bool:
        try:
            received = self.socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            if "WANT" in type(error).__name__.upper():
                return False
            self.end = "reset"
            return False
        if not received:
            self.end = "closed"
            return False
        self._received += received
        self._parse()
        return True

    def _parse(self) -> None:
        position = 0
        view = memoryview(self._received)
        while len(view) - position >= 9:
            length = int.from_bytes(view[position:position + 3], "big")
            if len(view) - position < 9 + length:
                break
            try:
                found, _ = Frame.parse_frame_header(view[position:position + 9])
                found.parse_body(view[position + 9:position + 9 + length])
            except HyperframeError as error:
                raise AssertionError(f"the server sent a malformed frame: {error}") from error
            position += 9 + length
            self._take(found)
        self._received = self._received[position:]

    def _take(self, found: Frame) -> None:
        self.frames.append(found)
        answer = self.answers[found.stream_id] if found.stream_id else None
        if isinstance(found, SettingsFrame) and "ACK" in found.flags:
            self.acknowledged += 1
        elif isinstance(found, SettingsFrame):
            self.peer_settings.update(found.settings)
            if self.acknowledges:
                self._reply(frame(4, 1))
        elif isinstance(found, PingFrame) and "ACK" not in found.flags and self.acknowledges:
            self._reply(frame(6, 1, 0, found.opaque_data))
        elif isinstance(found, (HeadersFrame, ContinuationFrame)):
            self._fragment += found.data
            if "END_HEADERS" in found.flags:
                answer.blocks.append(self.decoder.decode(self._fragment))
                self._fragment = b""
            answer.is_ended |= "END_STREAM" in found.flags
        elif isinstance(found, DataFrame):
            answer.body += found.data
            answer.is_ended |= "END_STREAM" in found.flags
        elif isinstance(found, RstStreamFrame):
            answer.reset = found.error_code
        elif isinstance(found, WindowUpdateFrame):
            if found.stream_id:
                self.stream_windows[found.stream_id] = (
                    self.stream_windows.get(found.stream_id, 0) + found.window_increment)
            else:
                self.window += found.window_increment

    def _reply(self, reply: bytes) -> None:
        """Not at once: it may be in the middle of sending something else."""
        self._replies += reply

    def _send_replies(self) -> None:
        replies, self._replies = self._replies, b""
        if replies and self.end is None and not self.is_deaf:
            try:
                self.socket.send(replies)
            except OSError:
                pass

    def until(self, condition, what: str) -> None:
        """Reads until the condition holds; fails when the connection ends before."""
        self._wait(lambda: condition() or self.end is not None, what)
        assert condition(), f"the connection was {self.end} before {what}; {self.summary()}"

    def until_end(self, what: str = "the server closes the connection") -> None:
        self._wait(lambda: self.end is not None, what)

    def _wait(self, condition, what: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            left = until - time.monotonic()
            assert left > 0, f"waited {PATIENCE_SECONDS} s until {what}; {self.summary()}"
            pending = getattr(self.socket, "pending", lambda: 0)()
            if pending or select.select([self.socket], [], [], left)[0]:
                self._read()
                self._send_replies()

    def answer(self, stream: int) -> Answer:
        """The whole answer on that stream."""
        found = self.answers[stream]
        self.until(lambda: found.is_over, f"stream {stream} is answered")
        return found

    def settled(self) -> None:
        """The server's SETTINGS have come and ours are acknowledged."""
        self.until(lambda: self.peer_settings and self.acknowledged, "SETTINGS are exchanged")

    def round_trip(self) -> None:
        """The server has read everything sent so far. By SETTINGS, of which it bears 20 at once: PINGs are rationed."""
        self.asked += 1
        self.send(settings())
        self.until(lambda: self.acknowledged >= self.asked, "SETTINGS are acknowledged")

    def of(self, kind: type) -> list:
        return [found for found in self.frames if isinstance(found, kind)]

    @property
    def goaway(self) -> GoAwayFrame | None:
        """The last one."""
        found = self.of(GoAwayFrame)
        return found[-1] if found else None

    def summary(self) -> str:
        return f"received {len(self.frames)} frames, the last of them {self.frames[-3:]}"
