"""deploy/local/setup: makes everything that a local Afterthoughts needs; what is there already stays."""

import argparse
import os

from . import certificates, packages, python_environment, settings
from .cluster import Cluster
from .console import Fault, Steps, checked, watched
from .layout import DATABASE_SERVICES, LOCAL, ROOT, Layout, build_configuration, executables, scratch_path


def build(steps: Steps, tests: bool) -> None:
    if os.environ.get("AFTERTHOUGHTS_BIN") and not tests:
        steps.detail(f"taking the executables in {executables()}")
        return
    command = ["swift", "build", "--package-path", ROOT, "--scratch-path", scratch_path(),
               "-c", build_configuration(), *(["--build-tests"] if tests else [])]
    watched(command, LOCAL / "log" / "build.log", "mend what the compiler names, then run this command again")


def migrate(layout: Layout) -> None:
    for name in DATABASE_SERVICES:
        environment = {**os.environ, **settings.environment(layout, name)}
        checked([executables() / name, "migrate"], f"see services/{name}/Migrations", env=environment)


def own_local_folder() -> None:
    LOCAL.mkdir(exist_ok=True)
    owner = LOCAL.stat().st_uid
    if owner != os.geteuid():
        raise Fault(f"{LOCAL} belongs to another account (user id {owner})",
                    "run this command as that account, or remove the folder")
    # PostgreSQL's account passes through it; what is private lies in folders of mode 0700.
    LOCAL.chmod(0o755)


def main(arguments: list | None = None) -> int:
    parser = argparse.ArgumentParser(prog="deploy/local/setup", description=__doc__)
    parser.add_argument("--stop", action="store_true", help="stop the PostgreSQL cluster that setup leaves running")
    parser.add_argument("--without-services", action="store_true",
                        help="neither build nor migrate: packages, Python, PostgreSQL, roles, certificates only")
    parser.add_argument("--with-tests", action="store_true", help="build the Swift tests too")
    given = parser.parse_args(arguments)
    if given.stop:
        cluster = Cluster()
        if cluster.is_running():
            cluster.stop()
        return 0

    os.umask(0o022)
    steps = Steps(8)
    steps.begin("Debian packages")
    own_local_folder()
    packages.ensure(steps)
    steps.begin("Python packages and stubs", "about a minute the first time")
    python_environment.ensure(steps)
    steps.begin("Swift build", "about 10 minutes the first time")
    if not given.without_services:
        build(steps, given.with_tests)
    steps.begin("PostgreSQL cluster")
    cluster = Cluster()
    cluster.ensure(steps)
    layout = Layout.local()
    steps.begin("database, roles and schemas")
    cluster.ensure_database(layout)
    steps.begin("certificates and keys")
    certificates.ensure(steps)
    steps.begin("settings of each service")
    settings.write(layout)
    steps.begin("migrations")
    if not given.without_services:
        migrate(layout)
    return 0
