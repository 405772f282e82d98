"""The Python of the tests and tools: a virtual environment with pinned packages, and stubs made from proto/."""

import hashlib
import shutil
import subprocess
import sys

from .console import Fault, Steps, checked
from .layout import LOCAL, ROOT, STUBS, VENV, VENV_PYTHON

REQUIREMENTS = ROOT / "deploy" / "local" / "requirements.txt"


def interpreter() -> str:
    """A Python of 3.10 or newer that can make virtual environments; Debian's own comes first."""
    probe = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"
    for candidate in ("/usr/bin/python3", shutil.which("python3"), sys.executable):
        if candidate and subprocess.run([candidate, "-c", probe], capture_output=True, check=False).returncode == 0:
            return candidate
    raise Fault("no Python of 3.10 or newer with the venv module was found", "apt-get install python3-venv")


def digest(*paths) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def ensure(steps: Steps) -> None:
    stamp = VENV / "requirements.sha256"
    wanted = digest(REQUIREMENTS)
    works = VENV_PYTHON.exists() and subprocess.run([VENV_PYTHON, "-c", ""], check=False).returncode == 0
    if not works or not stamp.exists() or stamp.read_text() != wanted:
        steps.detail("installing what deploy/local/requirements.txt names")
        checked([interpreter(), "-m", "venv", "--clear", VENV])
        checked([VENV_PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS],
                "see that the machine reaches the Python package index, then run this command again")
        stamp.write_text(wanted)
    stubs(steps)


def stubs(steps: Steps) -> None:
    """Python messages and clients from the .proto files, made anew when one of them has changed."""
    protos = sorted((ROOT / "proto").rglob("*.proto"))
    # google.rpc and google.protobuf come with Python packages; a second copy would clash with theirs.
    ours = [path for path in protos if path.relative_to(ROOT / "proto").parts[0] not in ("google", "grpc")]
    if not ours:
        return
    stamp = STUBS / "protos.sha256"
    wanted = digest(REQUIREMENTS, *protos)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    steps.detail("making Python stubs from proto/")
    fresh = LOCAL / "python.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    checked([VENV_PYTHON, "-m", "grpc_tools.protoc", "-I", ROOT / "proto", f"--python_out={fresh}",
             f"--grpc_python_out={fresh}", *ours], "mend the .proto file that is named above")
    (fresh / "protos.sha256").write_text(wanted)
    shutil.rmtree(STUBS, ignore_errors=True)
    fresh.rename(STUBS)
