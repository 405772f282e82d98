"""Whether a port is free, and who holds it."""

import os
import socket
from pathlib import Path

from .console import Fault
from .layout import HOST


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Without SO_REUSEPORT: a service that listens already is noticed even though it would share its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def holder(port: int) -> str:
    """What is known about the process that listens on the port, for a person to read."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if any(os.readlink(entry) in inodes for entry in (process / "fd").iterdir()):
                return f"process {process.name} ({(process / 'comm').read_text().strip()})"
        except OSError:
            continue
    return "another process"


def require_free(port: int, purpose: str) -> None:
    if not is_free(port):
        raise Fault(f"port {port}, meant for {purpose}, is in use by {holder(port)}",
                    "stop that process, or set AFTERTHOUGHTS_PORT_BASE to another number (7100 is the usual one)")
