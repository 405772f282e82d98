"""A running Afterthoughts: the eight services and an SMTP sink, each its own process, which may be killed singly."""

import fcntl
import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc

from . import mail_sink, ports, settings
from .cluster import Cluster
from .console import Fault
from .layout import DATABASE_SERVICES, HOST, LOCAL, SERVICES, TLS, Layout, executables
from .mailbox import Mailbox

SINK = "smtp"


class Stack:
    """Usable as a context manager, which starts and stops it. Signals to the terminal do not reach the services: the
    stack alone stops them."""

    def __init__(self, layout: Layout, programs: Path | None = None):
        self.layout = layout
        self.programs = programs or executables()
        self.mail = Mailbox(layout.mail)
        self.processes: dict[str, subprocess.Popen] = {}
        self._lock = None

    def __enter__(self) -> "Stack":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    # Before the start

    def prepare(self, fresh: bool = False) -> None:
        """Database, roles, schemas, settings and migrations. `fresh` begins with an empty database and no mail."""
        self._take()
        cluster = Cluster()
        if fresh:
            cluster.drop_database(self.layout)
            for folder in (self.layout.mail, self.layout.logs):
                shutil.rmtree(folder, ignore_errors=True)
        cluster.ensure_database(self.layout)
        settings.write(self.layout)
        self.migrate()

    def migrate(self) -> None:
        for name in DATABASE_SERVICES:
            done = subprocess.run(
                [self._program(name), "migrate"], env=self._environment(name), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Fault(f"`{name} migrate` ended with code {done.returncode}\n{done.stdout}{done.stderr}".rstrip(),
                            f"see services/{name}/Migrations")

    def _take(self) -> None:
        """One owner at a time; the lock ends with this process, however that ends."""
        if self._lock is not None:
            return
        self.layout.run.mkdir(parents=True, exist_ok=True)
        lock = open(self.layout.run / "lock", "a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            owner = lock.read().strip()
            lock.close()
            raise Fault(f"this stack ({self.layout.name}) is running already, by process {owner}",
                        "stop that one first (Ctrl-C where it runs)") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._lock = lock
        self._end_leftovers()

    def _end_leftovers(self) -> None:
        """Services of an owner that was killed run on; they are known by the files in which their ids stand."""
        for file in self.layout.run.glob("*.pid"):
            number = int(file.read_text() or 0)
            try:
                environment = Path(f"/proc/{number}/environ").read_bytes()
            except OSError:
                environment = b""
            if f"AFTERTHOUGHTS_STACK={self.layout.run}".encode() in environment.split(b"\0"):
                os.kill(number, signal.SIGKILL)
                # The kernel gives the port back a little after the process is gone.
                port = self.layout.smtp_port if file.stem == SINK else self.layout.port(file.stem)
                until = time.monotonic() + 5
                while not ports.is_free(port) and time.monotonic() < until:
                    time.sleep(0.02)
            file.unlink()

    # Running

    def start(self, order: list | None = None, wait: bool = True) -> None:
        """Starts the sink and all services, in the given order or the usual one, and waits till each answers."""
        self._take()
        for name in SERVICES:
            ports.require_free(self.layout.port(name), name)
        ports.require_free(self.layout.smtp_port, "the SMTP sink")
        try:
            self.start_one(SINK, wait)
            for name in order or SERVICES:
                self.start_one(name, wait=False)
            if wait:
                for name in SERVICES:
                    self.wait_ready(name)
        except BaseException:
            self.stop()
            raise

    def start_one(self, name: str, wait: bool = True) -> None:
        if name in self.processes:
            raise AssertionError(f"{name} is running already")
        self.layout.logs.mkdir(parents=True, exist_ok=True)
        self.layout.mail.mkdir(parents=True, exist_ok=True)
        if name == SINK:
            command = [sys.executable, mail_sink.__file__, "--port", str(self.layout.smtp_port),
                       "--folder", str(self.layout.mail)]
            environment = self._base_environment()
        else:
            command, environment = [str(self._program(name)), "serve"], self._environment(name)
        with open(self.layout.logs / f"{name}.log", "ab") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        self.processes[name] = process
        (self.layout.run / f"{name}.pid").write_text(str(process.pid))
        if wait:
            self.wait_ready(name)

    def wait_ready(self, name: str, seconds: float = 30) -> None:
        """Returns when the service answers; one that ended, or stays silent, is a Fault with the end of its log."""
        until = time.monotonic() + seconds
        while not self.is_ready(name):
            code = self.processes[name].poll()
            if code is not None or time.monotonic() > until:
                what = f"ended with code {code}" if code is not None else f"does not answer after {seconds:g} s"
                log = self.layout.logs / f"{name}.log"
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
                raise Fault(f"{name} {what}; the end of its log:\n{tail}", f"read {log}")
            time.sleep(0.02)

    def is_ready(self, name: str) -> bool:
        if name == SINK:
            return ports.answers(self.layout.smtp_port)
        if name == "gateway":
            connection = http.client.HTTPConnection(HOST, self.layout.port(name), timeout=2)
            try:
                connection.request("HEAD", "/")
                connection.getresponse()
                return True
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()
        credentials = grpc.ssl_channel_credentials((TLS / "ca.pem").read_bytes())
        with grpc.secure_channel(self.layout.address(name), credentials,
                                 options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            # Both messages have one field; spelled out, so that this works before any stub is made. The empty name would
            # stand for the process alone; the service's name includes its database.
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            asked = f"afterthoughts.{name}.v1.{name.capitalize()}Service".encode()
            try:
                return check(b"\x0a" + bytes([len(asked)]) + asked, timeout=2) == b"\x08\x01"
            except grpc.RpcError:
                return False

    def stop(self, grace: float = 10) -> list:
        """SIGTERM to all, SIGKILL to who is still there after `grace` seconds; returns the names of the latter."""
        killed = []
        for name, process in self.processes.items():
            if name != SINK and process.poll() is None:
                process.terminate()
        until = time.monotonic() + grace
        # The sink goes last: what notifications has in flight may still be accepted.
        for name in sorted(self.processes, key=lambda name: name == SINK):
            process = self.processes[name]
            if name == SINK:
                process.terminate()
                until = time.monotonic() + 5
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed.append(name)
            (self.layout.run / f"{name}.pid").unlink(missing_ok=True)
        self.processes.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        return killed

    # Trouble on purpose

    def kill(self, name: str) -> None:
        """kill -9, and the process is gone when this returns."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        (self.layout.run / f"{name}.pid").unlink(missing_ok=True)

    def terminate(self, name: str, grace: float = 10) -> int:
        """SIGTERM, as an operator stops one; returns its exit code."""
        process = self.processes[name]
        process.terminate()
        code = process.wait(grace)
        del self.processes[name]
        (self.layout.run / f"{name}.pid").unlink(missing_ok=True)
        return code

    def restart(self, name: str) -> None:
        """kill -9 and start again."""
        if name in self.processes:
            self.kill(name)
        self.start_one(name)

    def dead(self) -> dict:
        """Services that ended by themselves, with their exit codes: empty in a healthy stack."""
        return {name: process.poll() for name, process in self.processes.items() if process.poll() is not None}

    def log(self, name: str) -> str:
        return (self.layout.logs / f"{name}.log").read_text(errors="replace")

    # Shared parts

    def _program(self, name: str) -> Path:
        program = self.programs / name
        if not program.exists():
            raise Fault(f"{program} does not exist", "run deploy/local/setup")
        return program

    def _base_environment(self) -> dict:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "SWIFT_BACKTRACE") if key in os.environ}
        return {**kept, "LANG": "C.UTF-8", "TZ": "UTC", "AFTERTHOUGHTS_STACK": str(self.layout.run)}

    def _environment(self, name: str) -> dict:
        return {**self._base_environment(), **settings.environment(self.layout, name)}


def addresses(layout: Layout) -> list:
    """Lines for a person: what listens where."""
    lines = [f"  {name:14} {layout.address(name)}   gRPC over TLS, authority {TLS / 'ca.pem'}"
             for name in DATABASE_SERVICES]
    return [*lines, f"  {'web pages':14} {layout.public_url}", f"  {'mails':14} {layout.mail}/*.eml",
            f"  {'logs':14} {layout.logs}/*.log", f"  {'state':14} {LOCAL}"]
