"""kill -9 at any point loses nothing: the journey completes, and every mail goes out."""

import collections
import re

import pytest
from rig.journey import Journey
from rig.layout import SERVICES, Layout
from rig.stack import Stack

LAYOUT = Layout.named("kills", 500)


@pytest.fixture
def stack(cluster):
    running = Stack(LAYOUT)
    running.prepare(fresh=True)
    with running:
        yield running


@pytest.mark.parametrize("name", SERVICES)
def test_DE_2_journey_completes_though_a_service_is_killed_before_every_step(stack, browser, name):
    """The service starts again while the step is being tried: the client repeats what answers UNAVAILABLE."""

    def kill(step):
        stack.kill(name)
        stack.start_one(name, wait=False)

    journey = Journey(stack, browser)
    journey.walk(before_each=kill)
    stack.wait_ready(name)
    # Each mail was accepted once, unless notifications died while one was in flight: then with the same id.
    counts = collections.Counter(mail.message_id for mail in stack.mail.all())
    if name != "notifications":
        assert max(counts.values()) == 1
    assert len(stack.mail.all("clara@example.org")) == 1 or name == "notifications"
    assert stack.dead() == {}


RECIPIENTS = 200
LETTERS = 5


@pytest.fixture
def fan_out(stack, browser):
    """An author with 5 letters to 200 recipients each, ready to be confirmed."""
    journey = Journey(stack, browser)
    assert journey.verification
    vault, recipients = journey.author.client.vault, journey.author.client.recipients
    ids = [recipients.AddRecipient(name=f"Person {number}", email=f"person{number}@example.org",
                                   relationship="RELATIONSHIP_OTHER").recipient.recipient_id
           for number in range(RECIPIENTS)]
    for number in range(LETTERS):
        vault.SaveToVault(content={
            "type": "MESSAGE_TYPE_LETTER", "title": f"Letter {number}", "body": "Farewell.", "recipient_ids": ids,
            "delivery_condition": {"immediate": {}}})
    confirmation = journey.administrator.client.confirmation
    attempt = confirmation.OpenAttempt(designation_id=journey.verification.designation_id)
    code = re.search(r"\b\d{6}\b", journey.mail.wait_for(journey.administrator.email).text).group()
    confirmation.AnswerChallenge(attempt_id=attempt.attempt_id, security_answer="linden street", code=code)
    return lambda: confirmation.ConfirmPassing(attempt_id=attempt.attempt_id, typed_name=attempt.display_name)


def of_the_letters(mails: list) -> list:
    return [mail for mail in mails if mail.to.startswith("person")]


@pytest.mark.parametrize("name", ["delivery", "notifications"])
def test_DE_2_killing_a_service_amid_a_fan_out_loses_no_mail(stack, fan_out, name):
    fan_out()
    for part in (1, 200, 500, 800):
        stack.mail.wait_until(lambda mails, part=part: len(of_the_letters(mails)) >= part)
        stack.restart(name)
    wanted = RECIPIENTS * LETTERS
    mails = of_the_letters(stack.mail.wait_until(
        lambda mails: len({mail.message_id for mail in of_the_letters(mails)}) >= wanted, seconds=180))
    counts = collections.Counter(mail.message_id for mail in mails)
    assert len(counts) == wanted
    # Every recipient has one mail of each letter.
    recipients = collections.Counter(mail.to for mail in {mail.message_id: mail for mail in mails}.values())
    assert len(recipients) == RECIPIENTS and set(recipients.values()) == {LETTERS}
    repeated = sum(count - 1 for count in counts.values())
    if name == "delivery":
        assert repeated == 0
    else:
        # Only what was in flight at a kill: at most one mail for each of the 4 connections and each of the 4 kills.
        assert repeated <= 4 * 4
