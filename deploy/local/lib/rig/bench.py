"""deploy/local/bench: requests per server-CPU-second and resident memory of a unary echo of 1 KiB.

Our gRPC server and nghttpd take turns on core 0; h2load sends the same bytes from core 1. nghttpd answers from a file
with those bytes, since its own echo goes through a temporary file. Each number is the median over the rounds."""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from . import ports
from .console import Fault, Steps, checked, say, watched
from .layout import HOST, LOCAL, ROOT, port_base, scratch_path

PRODUCT = "echo-server"
PATH = "/echo.Echo/Unary"
PAYLOAD = 1024
CONNECTIONS, STREAMS = 8, 32
PORT_OFFSET = 700


def framed() -> bytes:
    """gRPC's frame around `EchoMsg { bytes payload = 1; }`."""
    length = bytes([0x80 | PAYLOAD & 0x7F, PAYLOAD >> 7])
    message = b"\x0a" + length + os.urandom(PAYLOAD)
    return b"\x00" + len(message).to_bytes(4, "big") + message


class Server:
    """One contestant's process on core 0."""

    def __init__(self, name: str, command: list, port: int):
        self.name = name
        self.port = port
        ports.require_free(port, name)
        self.process = subprocess.Popen(["taskset", "-c", "0", *map(str, command)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not ports.answers(port):
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise Fault(f"{name} does not answer on port {port}", f"run it by hand: {' '.join(map(str, command))}")
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mebibytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def load(server: Server, body: Path, requests: int) -> dict:
    before = server.cpu_seconds()
    report = checked(
        ["taskset", "-c", "1", "h2load", "-n", requests, "-c", CONNECTIONS, "-m", STREAMS, "-t", 1, "-d", body,
         "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://{HOST}:{server.port}{PATH}"])
    spent = server.cpu_seconds() - before
    succeeded = int(re.search(r"(\d+) succeeded", report).group(1))
    if succeeded != requests:
        raise Fault(f"{server.name} answered {succeeded} of {requests} requests:\n{report}")
    # h2load sees HTTP's status only; that the bytes have come back shows in their number.
    received = int(re.search(r"\((\d+)\) data", report).group(1))
    if received < requests * body.stat().st_size:
        raise Fault(f"{server.name} sent {received} bytes for {requests} requests of {body.stat().st_size} bytes")
    return {
        "rate": float(re.search(r"([\d.]+) req/s", report).group(1)),
        "per_cpu": requests / max(spent, 0.01),
        "memory": server.resident_mebibytes(),
    }


def build(steps: Steps, static: bool) -> Path:
    scratch = LOCAL / "build-static" if static else scratch_path()
    command = ["swift", "build", "--package-path", ROOT, "--scratch-path", scratch, "-c", "release",
               "--product", PRODUCT, *(["--static-swift-stdlib"] if static else [])]
    steps.begin("Swift build of the echo server", "about 5 minutes the first time")
    watched(command, LOCAL / "log" / "bench-build.log", "mend what the compiler names")
    return scratch / "release" / PRODUCT


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/local/bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200_000, help="a round")
    parser.add_argument("--static", action="store_true", help="with the standard library linked statically, as shipped")
    given = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        raise Fault("the bench needs two cores")
    LOCAL.mkdir(exist_ok=True)
    steps = Steps(2)
    program = build(steps, given.static)
    steps.begin(f"{given.rounds} rounds of {given.requests} requests to each server")
    port = port_base() + PORT_OFFSET
    measured = {"afterthoughts": [], "nghttpd": []}
    idle = {}
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / PATH.lstrip("/")
        body.parent.mkdir()
        body.write_bytes(framed())
        contestants = {
            "afterthoughts": [program, "--port", port],
            "nghttpd": ["nghttpd", "--no-tls", f"--address={HOST}", f"--htdocs={folder}", "--max-concurrent-streams=256",
                        "--trailer=grpc-status: 0", port + 1],
        }
        for number in range(given.rounds):
            for offset, (name, command) in enumerate(contestants.items()):
                server = Server(name, command, port + offset)
                try:
                    idle.setdefault(name, server.resident_mebibytes())
                    load(server, body, max(1000, given.requests // 20))
                    measured[name].append(load(server, body, given.requests))
                finally:
                    server.stop()
            steps.detail(f"round {number + 1}: " + ", ".join(
                f"{name} {rounds[-1]['per_cpu']:,.0f}" for name, rounds in measured.items()) + " requests/CPU-second")
    median = {name: {key: statistics.median(entry[key] for entry in rounds) for key in rounds[0]}
              for name, rounds in measured.items()}
    say(f"\nUnary echo of {PAYLOAD} bytes, {CONNECTIONS} connections of {STREAMS} streams, server on one core")
    say(f"{'server':14} {'requests/s':>11} {'requests/CPU-s':>15} {'µs CPU each':>12} {'MiB idle':>9} {'MiB loaded':>11}")
    for name, row in median.items():
        say(f"{name:14} {row['rate']:11,.0f} {row['per_cpu']:15,.0f} {1e6 / row['per_cpu']:12.2f} "
            f"{idle[name]:9.1f} {row['memory']:11.1f}")
    ratio = median["nghttpd"]["per_cpu"] / median["afterthoughts"]["per_cpu"]
    say(f"CPU per request: {ratio:.2f} x nghttpd's (aim: at most 1)")
    return 0
