"""The project's own PostgreSQL cluster: made once, listening on 127.0.0.1 only, run by an account that is not root."""

import fcntl
import os
import pwd
import re
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from . import ports
from .console import Fault, Steps, checked
from .files import kept, private_folder, write_private
from .layout import DATABASE_SERVICES, HOST, LOCAL, ROOT, SECRETS, Layout, postgres_port

SUPERUSER = "afterthoughts"
ROLES_SQL = ROOT / "deploy" / "postgres" / "roles.sql"

SETTINGS = """\
# Written by deploy/local/setup; edits are lost.
listen_addresses = '{host}'
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 200
shared_buffers = 256MB
fsync = on
password_encryption = 'scram-sha-256'
timezone = 'UTC'
# No value that a caller sent may reach the log: neither parameters, nor the rows that error details quote.
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
log_error_verbosity = terse
log_line_prefix = '%m [%p] %u@%d '
log_timezone = 'UTC'
"""


def programs() -> Path:
    """The folder of the newest installed PostgreSQL's programs."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found:
        raise Fault("PostgreSQL's server programs were not found", "apt-get install postgresql")
    return max(found, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0))


def password(role: str) -> str:
    """The role's password, made the first time it is asked for."""
    return kept(SECRETS / "postgres" / role, lambda: secrets.token_hex(24))


def url(role: str, database: str) -> str:
    return f"postgresql://{quote(role)}:{password(role)}@{HOST}:{postgres_port()}/{quote(database)}"


def is_locked(path: Path) -> bool:
    """Whether a running stack holds the file."""
    try:
        with open(path, "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


class Cluster:
    """The cluster of this project folder, shared by all of its stacks."""

    def __init__(self):
        self.account = self._account()
        self.home = self._home()
        self.data = self.home / "data"
        self.log = self.home / "postgres.log"

    @staticmethod
    def _account():
        """PostgreSQL refuses to run as root: then it runs as an account of its own."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "afterthoughts-pg"):
            try:
                pwd.getpwnam(name)
                return name
            except KeyError:
                continue
        checked(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "afterthoughts-pg"])
        return "afterthoughts-pg"

    def _home(self) -> Path:
        """In .local, or, where the account cannot reach that (a parent folder for root only), below /var/tmp."""
        note = LOCAL / "postgres-home"
        if note.exists() and Path(note.read_text().strip()).exists():
            return Path(note.read_text().strip())
        home = LOCAL / "postgres"
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        if self.account is not None:
            shutil.chown(home, self.account)
            if subprocess.run(self._as_account(["test", "-w", home]), cwd="/", check=False).returncode != 0:
                home.rmdir()
                home = Path(tempfile.mkdtemp(prefix="afterthoughts-", dir="/var/tmp"))
                shutil.chown(home, self.account)
        note.write_text(f"{home}\n")
        return home

    def _as_account(self, command: list) -> list:
        command = [str(part) for part in command]
        return command if self.account is None else ["runuser", "-u", self.account, "--", *command]

    def _run(self, *command, remedy: str = "") -> str:
        return checked(self._as_account(list(command)), remedy, cwd="/")

    def is_running(self) -> bool:
        status = self._as_account([programs() / "pg_ctl", "-D", self.data, "status"])
        return subprocess.run(status, cwd="/", capture_output=True, check=False).returncode == 0

    def ensure(self, steps: Steps) -> None:
        """Makes the cluster if there is none, and starts it if it is not running."""
        if not (self.data / "PG_VERSION").exists():
            steps.detail(f"making a cluster in {self.data}")
            self._make()
        self._configure()
        if not self.is_running():
            self.start()
        self.psql("postgres", "REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;")

    def _make(self) -> None:
        text = password(SUPERUSER)
        file = self.home / "superuser-password"
        write_private(file, text + "\n")
        if self.account is not None:
            shutil.chown(file, self.account)
        try:
            self._run(programs() / "initdb", "-D", self.data, "-E", "UTF8", "--locale=C", "-U", SUPERUSER,
                      "--auth=scram-sha-256", f"--pwfile={file}", "--data-checksums",
                      remedy=f"remove {self.data} and run this command again")
        finally:
            file.unlink()

    def _configure(self) -> None:
        sockets = self.home / "run"
        if not sockets.exists():
            self._run("mkdir", "-m", "0700", sockets)
        # A socket's path may have 107 bytes at most; in a deeper folder TCP has to do.
        fits = len(str(sockets / ".s.PGSQL.65535.lock")) < 100
        text = SETTINGS.format(host=HOST, port=postgres_port(), sockets=sockets if fits else "")
        file = self.data / "afterthoughts.conf"
        if not file.exists() or file.read_text() != text:
            if self.is_running():
                self.stop()
            write_private(file, text)
            main = self.data / "postgresql.conf"
            if "include 'afterthoughts.conf'" not in main.read_text():
                with open(main, "a", encoding="utf-8") as conf:
                    conf.write("\ninclude 'afterthoughts.conf'\n")
            if self.account is not None:
                shutil.chown(file, self.account)

    def start(self) -> None:
        ports.require_free(postgres_port(), "PostgreSQL")
        self._run(programs() / "pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "60", "-s", "start",
                  remedy=f"read the end of {self.log}")

    def stop(self) -> None:
        self._run(programs() / "pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", "fast", "-s", "stop")

    def stop_if_unused(self) -> bool:
        """Stops the cluster unless a stack runs or somebody is still connected; says whether it did."""
        if not self.is_running() or any(is_locked(lock) for lock in [*LOCAL.glob("run/lock"), *LOCAL.glob("stacks/*/run/lock")]):
            return False
        others = self.psql("postgres", "SELECT count(*) FROM pg_stat_activity "
                                       "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();")
        if others.strip() != "0":
            return False
        self.stop()
        return True

    def psql(self, database: str, script: str, role: str = SUPERUSER) -> str:
        """Runs SQL or psql commands and returns bare rows; the script goes through a pipe, where no one can read it."""
        environment = {**os.environ, "PGPASSWORD": password(role), "PGCONNECT_TIMEOUT": "10"}
        return checked(
            [programs() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", HOST,
             "-p", postgres_port(), "-U", role, "-d", database],
            input=script, env=environment, cwd=ROOT)

    def dump(self, database: str) -> str:
        """All rows of all schemas as text; bytea columns as hexadecimal and, where that is UTF-8, as their text."""
        environment = {**os.environ, "PGPASSWORD": password(SUPERUSER)}
        text = checked([programs() / "pg_dump", "-h", HOST, "-p", postgres_port(), "-U", SUPERUSER, database],
                       env=environment, cwd="/")
        hidden = [bytes.fromhex(found).decode(errors="replace")
                  for found in re.findall(r"\\\\x((?:[0-9a-f]{2})+)", text)]
        return "\n".join([text, *hidden])

    def ensure_database(self, layout: Layout) -> None:
        """The stack's database with all roles, schemas and rights, and its services' URLs in files."""
        lines = [f"\\set database '{layout.database}'"]
        for name in DATABASE_SERVICES:
            lines.append(f"\\set {name}_password '{password('afterthoughts_' + name)}'")
            lines.append(f"\\set {name}_owner_password '{password('afterthoughts_' + name + '_owner')}'")
        self.psql("postgres", "\n".join([*lines, f"\\i '{ROLES_SQL}'", ""]))
        private_folder(layout.secrets)
        for name in DATABASE_SERVICES:
            serve, owner = f"afterthoughts_{name}", f"afterthoughts_{name}_owner"
            write_private(layout.secrets / f"{name}.database-url", url(serve, layout.database) + "\n")
            write_private(layout.secrets / f"{name}.migrate-database-url", url(owner, layout.database) + "\n")

    def drop_database(self, layout: Layout) -> None:
        self.psql("postgres", f'DROP DATABASE IF EXISTS "{layout.database}" WITH (FORCE);')
