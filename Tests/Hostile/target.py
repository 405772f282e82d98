"""The server under attack, the well-behaved client beside the attacker, and what both must look like afterwards."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import grpc

import wire
from rig.layout import executables

#: The sizes of the proof with AFTERTHOUGHTS_FULL=1, short forms otherwise.
IS_FULL = os.environ.get("AFTERTHOUGHTS_FULL") == "1"
#: glibc gives back what is freed, so that resident memory shows what the server holds.
TUNABLES = "glibc.malloc.trim_threshold=131072:glibc.malloc.arena_max=1"
#: What one loop keeps after a peak: 64 output blocks of 64 KiB, and what the allocator does not give back at once.
KEPT_KIB = 6 << 10


def size(short: int, full: int) -> int:
    return full if IS_FULL else short


def eventually(condition, what: str) -> None:
    """Waits for a condition of another process; the patience only bounds a hang."""
    until = time.monotonic() + wire.PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"waited {wire.PATIENCE_SECONDS} s until {what}"
        time.sleep(0.02)


class Target:
    """One `echo-server` process. Limits by name, times in seconds."""

    def __init__(self, folder: Path, port: int = 0, arguments: tuple = (), **limits: float):
        program = executables() / "echo-server"
        assert program.exists(), f"{program} is missing: swift build -c release --product echo-server"
        command = [str(program), "--port", str(port), *map(str, arguments)]
        for name, value in limits.items():
            command += ["--limit", f"{name.replace('_', '-')}={value}"]
        self.log = folder / f"echo-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sink,
                                            env={**os.environ, "GLIBC_TUNABLES": TUNABLES})
        line = self.process.stdout.readline().decode()
        found = re.fullmatch(r"listening on (\d+)\n", line)
        assert found, f"the server said {line!r}; {self.log.read_text()}"
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    # What it looks like

    @property
    def resident_kib(self) -> int:
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", text).group(1))

    @property
    def descriptor_count(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def lines(self, event: str | None = None) -> list:
        """The log's lines of that event."""
        found = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if event is None or line.get("event") == event]

    def tally(self) -> dict:
        """What it has counted; asking begins a new peak of handlers."""
        with wire.Wire(self.port) as connection:
            answer = connection.call(1, wire.message(), wire.request("/echo.Echo/Tally"))
        assert answer.status == 0, answer
        return {name: int(value) for name, value in re.findall(r"([A-Za-z_]+)=(\d+)", answer.body.decode("latin-1"))}

    def incidents(self, reason: str) -> tuple:
        """Log lines and the counter of one reason."""
        lines = [line for line in self.lines("connection_ended") if line["reason"] == reason]
        return len(lines), self.tally().get(reason, 0)

    def all_incidents(self) -> tuple:
        lines = self.lines("connection_ended")
        handlers = ("started", "running", "peak")
        return len(lines), sum(value for name, value in self.tally().items() if name not in handlers)


class Neighbour:
    """A grpcio client that calls without pause and keeps every failure. With `sends_again` it also sends again what
    never left it, as gRPC clients do unless told not to: a call may meet a connection that has just said GOAWAY."""

    def __init__(self, target: str, sends_again: bool = False):
        self.failures = []
        self.count = 0
        self._ended = threading.Event()
        self._channel = grpc.insecure_channel(target, options=[("grpc.enable_retries", int(sends_again))])
        self._call = self._channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.more(5)
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self._channel.close()

    def _run(self) -> None:
        payload = wire.echo(b"n" * 1024)[5:]
        while not self._ended.is_set():
            try:
                if self._call(payload, timeout=wire.PATIENCE_SECONDS, wait_for_ready=self.count == 0) != payload:
                    self.failures.append("another answer than the request")
            except grpc.RpcError as error:
                self.failures.append(f"{error.code().name}: {error.details()}")
            self.count += 1

    def more(self, number: int) -> None:
        """Waits until so many further calls have ended."""
        wanted = self.count + number
        eventually(lambda: self.count >= wanted, f"{number} more calls of the neighbour end")


@contextlib.contextmanager
def common_pass(target: Target):
    """The attack runs in the body. Afterwards: the neighbour had every answer, memory, descriptors and handlers are
    back, and the process is the same."""
    warm_up(target)
    resident, descriptors = target.resident_kib, target.descriptor_count
    with Neighbour(f"127.0.0.1:{target.port}") as neighbour:
        yield neighbour
        neighbour.more(20)
    assert neighbour.failures == []
    assert target.process.poll() is None, target.log.read_text()[-2000:]
    eventually(lambda: target.tally()["running"] == 0, "no handler runs any more")
    eventually(lambda: target.descriptor_count <= descriptors, f"descriptors are back to {descriptors}")
    allowed = resident * 1.2 + KEPT_KIB
    eventually(lambda: target.resident_kib <= allowed, f"resident memory is below {allowed:.0f} KiB again")


def warm_up(target: Target) -> None:
    before = target.descriptor_count
    with wire.Wire(target.port) as connection:
        assert connection.call(1, wire.echo(b"w" * 1024)).status == 0
    eventually(lambda: target.descriptor_count < max(before, 1) + 1, "the first connection is gone")


def one_line_each(target: Target, reason: str, number: int) -> None:
    """So many connections ended for that reason, with a log line and a count for each."""
    eventually(lambda: target.incidents(reason)[0] >= number, f"{number} ends by {reason} are logged")
    assert target.incidents(reason) == (number, number)
