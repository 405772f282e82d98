"""Fixtures of the tests that attack a server. `deploy/local/test` calls them; by hand, after a build of `echo-server`:

    .local/venv/bin/python -m pytest Tests/Hostile
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy" / "local" / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from target import Target  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """Starts servers with limits of their own; they end with the test."""
    running = []

    def started(**given) -> Target:
        running.append(Target(tmp_path, **given))
        return running[-1]

    yield started
    for target in running:
        target.stop()


@pytest.fixture
def server(start):
    """A server as it is configured without more ado."""
    return start()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One such server for a file of cases that leave no trace."""
    with Target(tmp_path_factory.mktemp("shared")) as target:
        yield target
