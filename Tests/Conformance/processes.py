"""Our two programs of the interoperability tests."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy" / "local" / "lib"))

from rig.layout import TLS, executables  # noqa: E402

#: The certificate that interop-server shows, one of the local services'.
CERTIFICATE, KEY, AUTHORITY = TLS / "gateway.pem", TLS / "gateway.key", TLS / "ca.pem"
#: As for Tests/Hostile: everything in its full size.
FULL = os.environ.get("AFTERTHOUGHTS_FULL") == "1"
#: The calls of each soak.
SOAK_CALLS = int(os.environ.get("AFTERTHOUGHTS_SOAK_CALLS", "1000" if FULL else "10"))
#: So that a fault fails a test instead of holding it up. Calls of a soak take their time.
PATIENCE_SECONDS = 120 + SOAK_CALLS


def program(name: str) -> Path:
    path = executables() / name
    assert path.exists(), f"{path} is missing: build it, or name its folder in AFTERTHOUGHTS_BIN"
    return path


class InteropServer:
    """interop-server while it runs."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [program("interop-server"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ})
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), f"interop-server said {line!r}"
        self.port = int(line.split()[-1])

    def ask_to_stop(self):
        self.process.terminate()

    def wait(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def interop_server(*, tls: bool = False):
    server = InteropServer(*(["--tls", "--cert", CERTIFICATE, "--key", KEY] if tls else []))
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()


def interop_client(case: str, port: int, *arguments, tls: bool = False) -> tuple:
    """Runs one case; gives (whether it held, what it said)."""
    command = [program("interop-client"), "--server", f"127.0.0.1:{port}", "--case", case, *arguments]
    done = subprocess.run(
        command + (["--tls", "--ca", AUTHORITY] if tls else []), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE_SECONDS)
    return done.returncode == 0, done.stdout + done.stderr
