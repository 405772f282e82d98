"""Services start, stop and restart in any order; each tells what is wrong with its settings."""

import os
import random
import subprocess
import time

import pytest
from rig import settings
from rig.client import expect_error
from rig.layout import DATABASE_SERVICES, SERVICES, Layout
from rig.people import People
from rig.stack import SINK, Stack

LAYOUT = Layout.named("order", 600)

ORDERS = {"reverse": sorted(SERVICES, key=lambda name: -list(SERVICES).index(name)),
          "random": random.Random(7).sample(list(SERVICES), len(SERVICES))}


@pytest.fixture(scope="module")
def prepared(cluster):
    stack = Stack(LAYOUT)
    stack.prepare(fresh=True)
    yield stack
    stack.stop()


@pytest.fixture(params=ORDERS)
def stack(prepared, request):
    """Started one after the other, each only once the one before is there."""
    prepared.start_one(SINK)
    for name in ORDERS[request.param]:
        prepared.start_one(name)
    yield prepared
    prepared.stop()


def page_status(address: str, method: str = "GET") -> int:
    done = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "-X", method, address],
                          capture_output=True, text=True, check=False)
    return int(done.stdout)


def wait_until(condition, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.05)


def test_every_start_order_ends_in_a_system_that_works_and_stops(stack, request):
    order = request.node.callspec.params["stack"]
    # Short, so that what stays unavailable is soon told.
    people = People(stack, patience=5)
    eva = people.register("Eva Brandt", f"eva.{order}@example.org")

    # Without notifications the registration is done, and its mail follows.
    assert stack.terminate("notifications") == 0
    account = people.anyone.identity.Register(**registration(people, f"ida.{order}@example.org")).account
    assert stack.mail.all(account.email) == []
    stack.start_one("notifications")
    assert stack.mail.wait_for(account.email, seconds=60).link

    # Without confirmation the rest answers; what needs it says that it is unavailable.
    anna = people.author("Anna Lindqvist", f"anna.{order}@example.org", eva)
    assert stack.terminate("confirmation") == 0
    with expect_error("UNAVAILABLE"):
        anna.client.vault.SaveToVault(content={
            "type": "MESSAGE_TYPE_NOTE", "title": "T", "body": "B", "recipient_ids": [anna.recipient_id],
            "delivery_condition": {"immediate": {}}})
    assert anna.client.vault.GetSummary().total == 2
    stack.start_one("confirmation")

    # The vault is down when the passing is confirmed: the mails wait for it. Down again when the letter is opened: the
    # page says so, nothing is marked, and the same link works afterwards.
    assert stack.terminate("vault") == 0
    People.confirm(people, anna, eva)
    stack.start_one("vault")
    link = stack.mail.wait_for(f"ben.anna.{order}@example.org", seconds=60).link
    token = link.rsplit("/", 1)[1]
    assert stack.terminate("vault") == 0
    with expect_error("UNAVAILABLE"):
        people.anyone.delivery.OpenLink(token=token)
    assert not people.anyone.delivery.GetLink(token=token).HasField("view_time")
    assert stack.terminate("delivery") == 0
    wait_until(lambda: page_status(link) == 503)
    for name in ("delivery", "vault"):
        stack.start_one(name)
    wait_until(lambda: page_status(link) == 200)
    people.anyone.delivery.OpenLink(token=token)
    assert people.anyone.delivery.GetLink(token=token).HasField("view_time")

    # Nobody has ended by itself, and all stop on SIGTERM.
    assert stack.dead() == {}
    assert {name: stack.terminate(name, grace=15) for name in reversed(ORDERS[order])} == dict.fromkeys(SERVICES, 0)


def registration(people, email: str) -> dict:
    terms = people.anyone.identity.GetLegalDocument(kind="LEGAL_DOCUMENT_KIND_TERMS")
    question = people.anyone.identity.ListSecurityQuestions().questions[0]
    return {"email": email, "password": "a lantern in the hall", "password_confirmation": "a lantern in the hall",
            "display_name": "Ida", "security_question_id": question.id, "security_answer": "Linden Street",
            "terms_accepted": True, "terms_version": terms.version}


# Commands

def run(stack, name: str, command: str, **changes):
    environment = {"PATH": os.environ["PATH"], **settings.environment(LAYOUT, name), **changes}
    return subprocess.run([stack.programs / name, command], capture_output=True, text=True, timeout=60,
                          env={key: value for key, value in environment.items() if value is not None})


@pytest.mark.parametrize("name", SERVICES)
def test_check_says_that_all_is_in_order_or_what_is_not(prepared, name, tmp_path):
    good = run(prepared, name, "check")
    assert good.returncode == 0 and good.stdout.endswith("in order\n"), good.stdout + good.stderr
    nothing = tmp_path / "nothing"
    wrong = [{"TLS_CA_PATH": None}, {"PUBLIC_URL": None}, {"TLS_KEY_PATH": str(nothing)}]
    if name in DATABASE_SERVICES:
        wrong += [{"LISTEN": "here"}, {"DATABASE_URL_FILE": str(nothing)}, {"KEY_ENCRYPTION_KEYS_FILE": str(nothing)}]
    for changes in wrong:
        bad = run(prepared, name, "check", **changes)
        told = bad.stdout + bad.stderr
        named = next(iter(changes)).removesuffix("_FILE")
        assert bad.returncode == 1 and (named in told or str(nothing) in told), told
        assert "in order" not in told
    assert run(prepared, name, "sing").returncode == 2


@pytest.mark.parametrize("name", SERVICES)
def test_migrating_again_applies_nothing(prepared, name):
    done = run(prepared, name, "migrate")
    assert done.returncode == 0 and done.stdout.startswith("nothing to apply"), done.stdout + done.stderr


@pytest.mark.parametrize("name", DATABASE_SERVICES)
def test_check_names_a_database_that_is_out_of_reach(prepared, name):
    bad = run(prepared, name, "check", DATABASE_URL_FILE=None, DATABASE_URL="postgresql://nobody@127.0.0.1:9/nothing")
    assert bad.returncode == 1 and "in order" not in bad.stdout
