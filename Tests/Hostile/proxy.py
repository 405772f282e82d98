"""A TCP proxy on the loopback whose faults are switched on and off while connections are open."""

import contextlib
import select
import socket
import struct
import threading


class FaultProxy:
    """Between a client and 127.0.0.1:`port`. `piece` cuts what passes into pieces of that many bytes; `is_silent`
    drops everything without a word; `cut` ends connections. What was lost by the network TCP sends again, so that loss
    shows as pieces and delay: `pause` waits so many seconds before each piece."""

    def __init__(self, port: int):
        self.target = port
        self.piece = 1 << 16
        self.pause = 0.0
        self.is_silent = False
        self._pairs = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._listener.close()
        self.cut()

    @property
    def open_count(self) -> int:
        with self._lock:
            return len(self._pairs)

    def cut(self, with_reset: bool = False) -> None:
        """Ends every connection at both sides; with a TCP reset if asked."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in [end for pair in pairs for end in pair]:
            with contextlib.suppress(OSError):
                if with_reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    end.shutdown(socket.SHUT_RDWR)
        # Their threads close them: a socket that another thread waits for stays open until it has waited.

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            pair = (near, far)
            for end in pair:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append(pair)
            threading.Thread(target=self._carry, args=(pair,), daemon=True).start()

    def _carry(self, pair: tuple) -> None:
        near, far = pair
        try:
            while True:
                readable = select.select(pair, [], [], 0.02)[0]
                with self._lock:
                    if pair not in self._pairs:
                        return
                for end in readable:
                    received = end.recv(1 << 16)
                    other = far if end is near else near
                    if not received and not self.is_silent:
                        return
                    if self.is_silent:
                        if not received:
                            self._ended.wait(0.02)
                        continue
                    for start in range(0, len(received), self.piece):
                        if self.pause:
                            self._ended.wait(self.pause)
                        other.sendall(received[start:start + self.piece])
        except (OSError, ValueError):
            pass
        finally:
            with self._lock:
                if pair in self._pairs:
                    self._pairs.remove(pair)
            near.close()
            far.close()
