"""HTTP/2 by hand, on hyperframe and hpack: a client that says exactly what a test wants, and a server that does.

Sockets have a time limit only so that a fault fails a test instead of holding it up."""

import base64
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field

import hpack
from hyperframe.frame import (
    DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PATIENCE_SECONDS = 20
WINDOW = (1 << 31) - 1
SERVICE = "/grpc.testing.TestService/"


def message(body: bytes, flag: int = 0) -> bytes:
    """A gRPC message in its frame."""
    return struct.pack(">BI", flag, len(body)) + body


def messages(body: bytes) -> list:
    """The (flag, message) pairs of a body, which must end where a message does."""
    found = []
    while body:
        flag, length = struct.unpack(">BI", body[:5])
        assert len(body) >= 5 + length, "the body ends within a message"
        found.append((flag, body[5:5 + length]))
        body = body[5 + length:]
    return found


def unpadded(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")


def decoded(text: str) -> bytes:
    assert "=" not in text, f"{text!r} is padded"
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def headers(method: str = "UnaryCall", *more, verb: str = "POST", without: tuple = (), **changed) -> list:
    """A request's fields; `changed` replaces values (`_` stands for `-`, `path` for `:path`), `more` is added."""
    fields = {":method": verb, ":scheme": "http", ":path": SERVICE + method, ":authority": "127.0.0.1",
              "content-type": "application/grpc", "te": "trailers"}
    for name, value in changed.items():
        name = name.replace("_", "-")
        fields[f":{name}" if f":{name}" in fields else name] = value
    return [pair for pair in fields.items() if pair[0] not in without] + list(more)


@dataclass
class Answer:
    """What came on a stream: its header blocks, its body, and how it ended."""

    blocks: list = field(default_factory=list)
    body: bytes = b""
    reset: int | None = None
    is_ended: bool = False

    def all(self, name: str) -> list:
        """Every value of that name in the last header block."""
        return [value for key, value in self.blocks[-1] if key == name]

    def first(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    @property
    def http_status(self) -> str:
        return dict(self.blocks[0])[":status"]

    @property
    def status(self) -> int:
        """grpc-status, which must be there, once, without a leading zero."""
        assert self.reset is None, f"the stream was reset with code {self.reset}"
        [text] = self.all("grpc-status")
        assert text == str(int(text))
        return int(text)

    @property
    def is_trailers_only(self) -> bool:
        return len(self.blocks) == 1 and self.is_ended and not self.body


class Peer:
    """One end of a connection."""

    def __init__(self, connection: socket.socket):
        self.socket = connection
        connection.settimeout(PATIENCE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self._buffer = b""

    def send(self, *frames: Frame):
        self.socket.sendall(b"".join(frame.serialize() for frame in frames))

    def block(self, stream: int, fields: list, end: bool = False) -> HeadersFrame:
        frame = HeadersFrame(stream, self.encoder.encode(fields), flags=["END_HEADERS"])
        if end:
            frame.flags.add("END_STREAM")
        return frame

    def _read(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            received = self.socket.recv(1 << 16)
            if not received:
                return None
            self._buffer += received
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def receive(self) -> Frame | None:
        """The next frame, SETTINGS answered; None when the other end has closed."""
        try:
            head = self._read(9)
        except ConnectionResetError:
            return None
        if head is None:
            return None
        frame, length = Frame.parse_frame_header(memoryview(head))
        frame.parse_body(memoryview(self._read(length) if length else b""))
        if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.send(SettingsFrame(0, flags=["ACK"]))
        return frame

    def close(self):
        self.socket.close()


class Client(Peer):
    """A client's end. Its windows are as large as can be, so that flow control is no test's concern by chance."""

    def __init__(self, port: int, settings: dict | None = None):
        super().__init__(socket.create_connection(("127.0.0.1", port)))
        chosen = {SettingsFrame.INITIAL_WINDOW_SIZE: WINDOW, SettingsFrame.ENABLE_PUSH: 0, **(settings or {})}
        self.socket.sendall(PREFACE)
        self.send(SettingsFrame(0, settings=chosen), WindowUpdateFrame(0, window_increment=WINDOW - 65535))
        self.answers = {}
        self.goaways = []
        self.answers_pings = True
        self._next = 1

    def open(self) -> int:
        """A stream's number; its frames are the caller's to send."""
        stream = self._next
        self._next += 2
        self.answers[stream] = Answer()
        return stream

    def begin(self, fields: list, end: bool = False) -> int:
        """Sends a header block; gives the stream."""
        stream = self.open()
        self.send(self.block(stream, fields, end))
        return stream

    @staticmethod
    def body(stream: int, pieces: tuple, end: bool = True) -> list:
        """One DATA frame for each piece."""
        frames = [DataFrame(stream, piece) for piece in pieces]
        if end and frames:
            frames[-1].flags.add("END_STREAM")
        return frames

    def data(self, stream: int, *pieces: bytes, end: bool = True):
        self.send(*self.body(stream, pieces, end))

    def step(self) -> Frame | None:
        """Takes in one frame."""
        frame = self.receive()
        match frame:
            case HeadersFrame() | DataFrame() | RstStreamFrame():
                answer = self.answers[frame.stream_id]
                if isinstance(frame, RstStreamFrame) and answer.is_ended and frame.error_code == 0:
                    return frame  # the answer is whole: the server wants no more of the request
                assert not answer.is_ended and answer.reset is None, "a frame came after the stream's end"
                if isinstance(frame, HeadersFrame):
                    assert "END_HEADERS" in frame.flags, "no test's answer needs CONTINUATION"
                    answer.blocks.append(self.decoder.decode(frame.data))
                elif isinstance(frame, DataFrame):
                    answer.body += frame.data
                else:
                    answer.reset = frame.error_code
                answer.is_ended = "END_STREAM" in frame.flags
            case GoAwayFrame():
                self.goaways.append(frame)
            case PingFrame() if self.answers_pings and "ACK" not in frame.flags:
                self.send(PingFrame(0, frame.opaque_data, flags=["ACK"]))
        return frame

    def until(self, is_done) -> Frame | None:
        """Takes frames in until one for which `is_done` holds, or the end."""
        while True:
            frame = self.step()
            if frame is None or is_done(frame):
                return frame

    def answer(self, stream: int) -> Answer:
        """Waits for the end of a stream."""
        answer = self.answers[stream]
        while not answer.is_ended and answer.reset is None:
            assert self.step() is not None, f"the connection ended before the stream; GOAWAY: {self.goaways}"
        return answer

    def call(self, fields: list, *pieces: bytes) -> Answer:
        """A whole call, sent at once; without pieces the request is its header block alone."""
        stream = self.open()
        self.send(self.block(stream, fields, end=not pieces), *self.body(stream, pieces))
        return self.answer(stream)


class Server(Peer):
    """A server's end of one connection."""

    def __init__(self, connection: socket.socket):
        super().__init__(connection)
        assert self._read(len(PREFACE)) == PREFACE
        self.send(SettingsFrame(0, settings={SettingsFrame.MAX_CONCURRENT_STREAMS: 100}))

    def request(self) -> tuple:
        """(stream, fields) of the next request; the request's body is left to come."""
        while True:
            frame = self.receive()
            assert frame is not None, "the client left without a request"
            if isinstance(frame, HeadersFrame):
                return frame.stream_id, self.decoder.decode(frame.data)


@contextlib.contextmanager
def server(script):
    """Runs `script(Server)` for each connection; gives the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    faults = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                peer = Server(connection)
                script(peer)
                while peer.receive() is not None:
                    pass
            except Exception as fault:  # the test's own thread raises it
                faults.append(fault)
            finally:
                connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
    if faults:
        raise faults[0]
