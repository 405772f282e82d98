"""Where everything of a local Afterthoughts lives: folders, ports, names. All of it stays on 127.0.0.1."""

import os
from dataclasses import dataclass
from pathlib import Path

from .console import Fault

ROOT = Path(__file__).resolve().parents[4]
LOCAL = ROOT / ".local"
HOST = "127.0.0.1"

#: The services, each with its port's distance from the base. The gateway's is the web port.
SERVICES = {
    "identity": 1, "vault": 2, "recipients": 3, "confirmation": 4, "delivery": 5, "entitlement": 6,
    "notifications": 7, "gateway": 80,
}
#: Where each shows its metrics and health.
ADMIN_PORTS = {name: 11 + place for place, name in enumerate(SERVICES)}
#: The services that own a schema of their name.
DATABASE_SERVICES = [name for name in SERVICES if name != "gateway"]
SMTP_OFFSET = 25
POSTGRES_OFFSET = 32

VENV = LOCAL / "venv"
VENV_PYTHON = VENV / "bin" / "python"
STUBS = LOCAL / "python"
TLS = LOCAL / "tls"
KEYS = LOCAL / "keys"
SECRETS = LOCAL / "secrets"


def port_base() -> int:
    """The first of the ports, 7100 unless AFTERTHOUGHTS_PORT_BASE says otherwise."""
    text = os.environ.get("AFTERTHOUGHTS_PORT_BASE", "7100")
    if not text.isdigit() or not 1024 <= int(text) <= 64000:
        raise Fault(f"AFTERTHOUGHTS_PORT_BASE is {text!r}", "set it to a number from 1024 to 64000")
    return int(text)


def postgres_port() -> int:
    """The cluster's port; all stacks of this folder share the one cluster."""
    return port_base() + POSTGRES_OFFSET


def build_configuration() -> str:
    """`debug` unless AFTERTHOUGHTS_CONFIGURATION says `release`. The tests run in the same one, so nothing is built
    twice, and they run with every check that the compiler can add."""
    value = os.environ.get("AFTERTHOUGHTS_CONFIGURATION", "debug")
    if value not in ("release", "debug"):
        raise Fault(f"AFTERTHOUGHTS_CONFIGURATION is {value!r}", "set it to release or debug")
    return value


def scratch_path() -> Path:
    return Path(os.environ.get("AFTERTHOUGHTS_SCRATCH_PATH", ROOT / ".build"))


def executables() -> Path:
    """The folder of the services' executables; AFTERTHOUGHTS_BIN names another one, which is then not built."""
    given = os.environ.get("AFTERTHOUGHTS_BIN")
    return Path(given) if given else scratch_path() / build_configuration()


@dataclass(frozen=True)
class Layout:
    """One stack: its own ports, database and folders. Keys, certificates and the cluster are the project folder's."""

    name: str
    ports_from: int
    database: str
    home: Path

    @staticmethod
    def local() -> "Layout":
        """The stack of deploy/local/up."""
        return Layout("local", port_base(), "afterthoughts", LOCAL)

    @staticmethod
    def named(name: str, offset: int) -> "Layout":
        """A stack beside it, `offset` ports further on, with a database and folders of its own."""
        return Layout(name, port_base() + offset, f"afterthoughts_{name}", LOCAL / "stacks" / name)

    def port(self, service: str) -> int:
        return self.ports_from + SERVICES[service]

    def address(self, service: str) -> str:
        return f"{HOST}:{self.port(service)}"

    def admin_address(self, service: str) -> str:
        return f"{HOST}:{self.ports_from + ADMIN_PORTS[service]}"

    @property
    def smtp_port(self) -> int:
        return self.ports_from + SMTP_OFFSET

    @property
    def public_url(self) -> str:
        return f"http://{self.address('gateway')}"

    @property
    def environments(self) -> Path:
        return self.home / "env"

    @property
    def logs(self) -> Path:
        return self.home / "log"

    @property
    def mail(self) -> Path:
        return self.home / "mail"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def secrets(self) -> Path:
        return self.home / "secrets"
