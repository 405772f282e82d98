"""The Debian packages that building and running take."""

import os
import shutil
import subprocess

from .console import Fault, Steps

PACKAGES = [
    "libprotobuf-c-dev", "protobuf-c-compiler", "protobuf-compiler", "libprotobuf-dev", "libnghttp2-dev", "libpq-dev",
    "libssl-dev", "libargon2-dev", "libcurl4-openssl-dev", "libmicrohttpd-dev", "libcmark-gfm-dev",
    "libcmark-gfm-extensions-dev", "libutf8proc-dev", "zlib1g-dev", "nghttp2-server", "nghttp2-client", "postgresql",
    "chromium", "chromium-driver", "openssl", "python3-venv", "pkg-config", "grpc-proto",
]


def missing() -> list:
    # pkgconf provides pkg-config on newer Debian, where dpkg still knows the transitional package's name.
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES], text=True, capture_output=True)
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in installed]


def ensure(steps: Steps) -> None:
    if shutil.which("swift") is None:
        raise Fault("there is no `swift` on the PATH", "install Swift 6.2 or newer and put its usr/bin on the PATH")
    if shutil.which("dpkg-query") is None:
        raise Fault("this is no Debian system (there is no dpkg-query)",
                    "use Debian 12 or newer; these packages are needed: " + " ".join(PACKAGES))
    absent = missing()
    if not absent:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *absent]
    if os.geteuid() != 0:
        raise Fault(f"{len(absent)} Debian packages are missing", "run this as root, then this command again:\n\n    "
                    "apt-get update && " + " ".join(install) + "\n")
    steps.detail("installing " + " ".join(absent))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], install):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment)
        if done.returncode != 0:
            raise Fault(" ".join(command[:3]) + f" ended with code {done.returncode}\n"
                        + "\n".join(done.stdout.splitlines()[-15:]),
                        "see that the machine reaches a Debian mirror, then run this command again")
