"""Fixtures of the tests that run whole services. `deploy/local/test` calls them; by hand, after deploy/local/setup:

    .local/venv/bin/python -m pytest Tests/Journey
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy" / "local" / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from rig.browser import Browser  # noqa: E402
from rig.client import Client  # noqa: E402
from rig.cluster import Cluster  # noqa: E402
from rig.layout import Layout  # noqa: E402
from rig.people import People  # noqa: E402
from rig.records import Records  # noqa: E402
from rig.stack import Stack  # noqa: E402

#: The tests' ports begin here, counted from the base: they may run beside deploy/local/up.
PORT_OFFSET = 400


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    found = Cluster()
    if not found.is_running():
        found.start()
    return found


@pytest.fixture(scope="module")
def stack(cluster):
    """All services on an empty database, shared by the tests of one file."""
    running = Stack(Layout.named("test", PORT_OFFSET))
    running.prepare(fresh=True)
    with running:
        yield running


@pytest.fixture
def mail(stack):
    return stack.mail


@pytest.fixture
def anyone(stack):
    """A client that is nobody yet."""
    client = Client(stack.layout)
    yield client
    client.close()


@pytest.fixture(scope="session")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def people(stack):
    return People(stack)


@pytest.fixture(scope="module")
def records(stack):
    return Records(stack)


@pytest.fixture(scope="module")
def eva(people):
    """An administrator."""
    return people.register("Eva Brandt", "eva@example.org")


@pytest.fixture(scope="module")
def anna(people, eva):
    """An author, alive."""
    return people.author("Anna Lindqvist", "anna@example.org", eva)


@pytest.fixture(scope="module")
def cleo(people, eva):
    """A stranger to both, who has the same of her own."""
    return people.author("Cleo Marsh", "cleo@example.org", eva)
