"""The main journey, from a registration to a letter read in a browser, on real parts.

Each step is a property: it is walked once, when somebody first needs it, and brings the steps before it along. The demo
walks them in order; a test asks for the one that it is about.
"""

import datetime
import re
import textwrap
import time
import zoneinfo
from dataclasses import dataclass

from .browser import Browser
from .client import Client, expect_error
from .console import say
from .mailbox import Mail
from .stack import Stack

ZONE = "Europe/Berlin"
PASSWORD = "a lantern in the hall"
ANSWER = "Linden Street"

LETTER_TITLE = "For when I am gone"
LETTER_BODY = """\
# My dears

Do not be sad for **too long**. The *garden* wants its ++water++.

- The key is under the stone.
- The piano is for [whoever plays](https://example.org/piano).
"""
FOLDER_TITLE = "About the chapel"
FOLDER_TEXT = "Play the Schubert, and let nobody wear black."


class step:
    """A property that is walked once. One that failed fails at once when it is needed again, naming the first cause."""

    def __init__(self, walk):
        self.walk = walk
        self.__doc__ = walk.__doc__

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, journey, owner=None):
        if journey is None:
            return self
        if self.name in journey.failed:
            raise AssertionError(f"the step {self.name!r} failed before: {journey.failed[self.name]}")
        try:
            value = self.walk(journey)
        except Exception as error:
            journey.failed[self.name] = str(error)[:300]
            raise
        # From now on the attribute itself is found first.
        journey.__dict__[self.name] = value
        return value


@dataclass
class Person:
    """Someone with an account; `client` calls in their name."""

    name: str
    email: str
    client: Client
    account_id: str
    refresh_token: str
    verification: Mail


class Journey:
    def __init__(self, stack: Stack, browser: Browser, tell=None, patience: float = 60):
        """`tell` takes each line of the story; without it the journey is silent. A call that a service cannot answer
        for the moment is repeated for `patience` seconds."""
        self.stack = stack
        self.mail = stack.mail
        self.browser = browser
        self.patience = patience
        self.anyone = Client(stack.layout, patience=patience)
        self._tell = tell or (lambda line: None)
        self._steps = 0
        self.failed: dict[str, str] = {}
        #: Every access and refresh token that a sign-in has given so far.
        self.session_tokens: list[str] = []

    # Telling

    def tell(self, text: str) -> None:
        self._steps += 1
        self._tell(f"\n{self._steps}. {text}")

    def note(self, text: str) -> None:
        self._tell(f"   {text}")

    def show(self, text: str) -> None:
        """A page's or mail's text, set off from the telling."""
        self._tell(textwrap.indent(text.strip(), "   | "))

    def wait_for_mail(self, address: str) -> Mail:
        """The next mail to the address; it may take as long as a call may."""
        mail = self.mail.wait_for(address, seconds=max(30, self.patience))
        self.note(f"mail: {mail.subject}")
        self.show(mail.text)
        return mail

    def open(self, link: str) -> Browser:
        self.note(link)
        return self._arrived(self.browser.open(link))

    def press(self, label: str = "") -> Browser:
        self.note(f"(the button{' ' + label if label else ''} is pressed)")
        return self._arrived(self.browser.press(label))

    def _arrived(self, page: Browser) -> Browser:
        """Asks again while the page says that something is out of reach, as a person would."""
        until = time.monotonic() + self.patience
        while page.status in (0, 502, 503, 504) and time.monotonic() < until:
            time.sleep(0.2)
            page.reload()
        self.show(page.text)
        assert page.status == 200, f"the page answers with status {page.status}"
        return page

    # People

    def register(self, name: str, email: str) -> Person:
        terms = self.anyone.identity.GetLegalDocument(kind="LEGAL_DOCUMENT_KIND_TERMS")
        question = self.anyone.identity.ListSecurityQuestions().questions[0]
        answer = self.anyone.identity.Register(
            email=email, password=PASSWORD, password_confirmation=PASSWORD, display_name=name,
            security_question_id=question.id, security_answer=ANSWER, terms_accepted=True, terms_version=terms.version,
            time_zone=ZONE)
        self.session_tokens += [answer.session.access_token, answer.session.refresh_token]
        mail = self.wait_for_mail(email)
        return Person(name, email, self.anyone.with_token(answer.session.access_token), answer.account.account_id,
                      answer.session.refresh_token, mail)

    def is_verified(self, person: Person) -> bool:
        return person.client.identity.GetAccount().account.email_verified

    def verify(self, person: Person) -> None:
        """The page changes nothing; its button does. Then a new session, whose token knows it."""
        self.open(person.verification.link)
        assert not self.is_verified(person), "opening the page alone has verified the address"
        self.press()
        assert self.is_verified(person), "the button has not verified the address"
        self.log_in(person)

    def log_in(self, person: Person) -> None:
        session = self.anyone.identity.LogIn(email=person.email.upper(), password=PASSWORD).session
        fresh = self.anyone.identity.Refresh(refresh_token=session.refresh_token).session
        assert fresh.access_token and fresh.refresh_token != session.refresh_token
        for given in (session, fresh):
            self.session_tokens += [given.access_token, given.refresh_token]
        person.client = self.anyone.with_token(fresh.access_token)
        person.refresh_token = fresh.refresh_token

    @step
    def author(self) -> Person:
        self.tell("Anna registers, follows the mailed link and signs in.")
        person = self.register("Anna Lindqvist", "anna@example.org")
        self.verify(person)
        return person

    # Recipients

    @step
    def group(self) -> str:
        self.tell("She makes a group.")
        return self.author.client.recipients.CreateGroup(name="Family").group.group_id

    @step
    def recipients(self) -> dict:
        """Recipients by first name; Clara and David are in the group, Ben has been asked to accept."""
        group = self.group
        self.tell("She adds three people: Clara and David to the group, Ben with a prompt to accept.")
        add = self.author.client.recipients.AddRecipient
        return {
            "Ben": add(name="Ben Okafor", email="ben@example.org", relationship="RELATIONSHIP_FRIEND",
                       prompt_channels=["PROMPT_CHANNEL_EMAIL"]).recipient,
            "Clara": add(name="Clara Lindqvist", email="clara@example.org", relationship="RELATIONSHIP_FAMILY",
                         group_ids=[group]).recipient,
            "David": add(name="David Lindqvist", email="david@example.org", relationship="RELATIONSHIP_FAMILY",
                         group_ids=[group]).recipient,
        }

    @step
    def prompt(self) -> Mail:
        assert self.recipients
        return self.wait_for_mail("ben@example.org")

    def acceptance(self, name: str):
        recipient_id = self.recipients[name].recipient_id
        return self.author.client.recipients.GetRecipient(recipient_id=recipient_id).recipient.acceptance

    @step
    def accepted(self) -> bool:
        link = self.prompt.link
        self.tell("Ben opens the page of his mail and accepts.")
        before = self.acceptance("Ben")
        self.open(link)
        assert self.acceptance("Ben") == before, "opening the page alone has answered"
        self.press("Accept")
        assert self.acceptance("Ben") != before, "the button has not accepted"
        return True

    # Administrator

    def letter_content(self) -> dict:
        return {
            "type": "MESSAGE_TYPE_LETTER", "title": LETTER_TITLE, "body": LETTER_BODY,
            "recipient_ids": [self.recipients["Ben"].recipient_id], "group_ids": [self.group],
            "delivery_condition": {"immediate": {}},
        }

    @step
    def refused_without_administrator(self) -> bool:
        content = self.letter_content()
        self.tell("She tries to save a letter: refused, for nobody could confirm her passing yet.")
        with expect_error("FAILED_PRECONDITION", "NO_ADMINISTRATOR") as failure:
            self.author.client.vault.SaveToVault(content=content)
        self.note(failure.message)
        return True

    @step
    def designation(self):
        assert self.refused_without_administrator
        self.tell("She designates Eva as her administrator; Eva is told by mail.")
        answer = self.author.client.confirmation.Designate(
            administrator={"contact": {"name": "Eva Brandt", "email": "eva@example.org"}})
        return answer.designations[0]

    @step
    def role_mail(self) -> Mail:
        assert self.designation
        return self.wait_for_mail("eva@example.org")

    @step
    def administrator(self) -> Person:
        assert self.role_mail
        self.tell("Eva registers with that address and proves it.")
        person = self.register("Eva Brandt", "eva@example.org")
        self.verify(person)
        return person

    @step
    def verification(self):
        """Anna, on Eva's list."""
        client = self.administrator.client
        self.tell("Eva sees Anna on her list.")
        until = time.monotonic() + 30
        while True:
            found = client.confirmation.ListVerifications().verifications
            if found or time.monotonic() > until:
                break
            time.sleep(0.1)
        assert [entry.account_id for entry in found] == [self.author.account_id]
        self.note(f"{found[0].display_name}, designated {found[0].designate_time.ToDatetime():%Y-%m-%d}")
        return found[0]

    # Messages

    @step
    def letter(self):
        assert self.designation
        content = self.letter_content()
        self.tell("Anna saves a letter to Ben and the family, for the moment of the confirmation.")
        return self.author.client.vault.SaveToVault(content=content).message

    @step
    def note_in_a_month(self):
        assert self.designation
        content = {
            "type": "MESSAGE_TYPE_NOTE", "title": "One month on", "body": "Have you watered the garden?",
            "recipient_ids": [self.recipients["Clara"].recipient_id],
            "delivery_condition": {"relative_delay": {"count": 1, "unit": "DELAY_UNIT_MONTHS"}},
        }
        self.tell("And a note to Clara for one month after.")
        return self.author.client.vault.SaveToVault(content=content).message

    @step
    def date(self) -> datetime.date:
        """The specific date: somewhat over a year from now."""
        return datetime.datetime.now(zoneinfo.ZoneInfo(ZONE)).date() + datetime.timedelta(days=400)

    @step
    def note_on_a_date(self):
        assert self.designation
        day = {"year": self.date.year, "month": self.date.month, "day": self.date.day}
        content = {
            "type": "MESSAGE_TYPE_NOTE", "title": "Your birthday", "body": "Many happy returns, David.",
            "recipient_ids": [self.recipients["David"].recipient_id],
            "delivery_condition": {"specific_date": {"date": day}},
        }
        self.tell(f"And a note to David for {self.date}.")
        return self.author.client.vault.SaveToVault(content=content).message

    @step
    def draft(self):
        content = {
            "type": "MESSAGE_TYPE_LETTER", "title": "Not for anyone", "body": "This must never leave.",
            "recipient_ids": [self.recipients["Ben"].recipient_id], "delivery_condition": {"immediate": {}},
        }
        self.tell("And a draft that must never leave.")
        return self.author.client.vault.SaveDraft(content=content).message

    @step
    def folder_item(self):
        client = self.author.client
        self.tell("And she puts a page about her funeral into the secure folder.")
        return client.vault.SaveFolderItem(
            section="FOLDER_SECTION_FINAL_WISHES", title=FOLDER_TITLE, text=FOLDER_TEXT).item

    @step
    def summary(self):
        """The vault's counts once all four messages are there."""
        assert self.letter and self.note_in_a_month and self.note_on_a_date and self.draft
        found = self.author.client.vault.GetSummary()
        self.tell(f"Her vault holds {found.total} messages: {found.ready} ready, {found.drafts} draft.")
        return found

    # Confirmation

    @step
    def attempt(self):
        designation_id = self.verification.designation_id
        assert self.summary and self.folder_item and self.accepted
        self.tell("Anna has died. Eva opens an attempt and reads what a confirmation means.")
        found = self.administrator.client.confirmation.OpenAttempt(designation_id=designation_id)
        self.show(found.explanation)
        return found

    @step
    def code_mail(self) -> Mail:
        assert self.attempt
        return self.wait_for_mail(self.administrator.email)

    @step
    def code(self) -> str:
        return re.search(r"\b\d{6}\b", self.code_mail.text).group()

    @step
    def challenge(self):
        code = self.code
        self.tell("She answers her own security question and types the mailed code.")
        return self.administrator.client.confirmation.AnswerChallenge(
            attempt_id=self.attempt.attempt_id, security_answer=f" {ANSWER.upper()} ", code=code)

    def confirm(self):
        return self.administrator.client.confirmation.ConfirmPassing(
            attempt_id=self.attempt.attempt_id, typed_name=self.attempt.display_name)

    @step
    def confirmation(self):
        assert self.challenge
        self.tell("She types Anna's name and confirms.")
        found = self.confirm()
        self.show(found.summary)
        return found

    # Delivery

    @step
    def letters(self) -> dict:
        """The letter's mails by the first name of their recipients."""
        assert self.confirmation
        self.tell("The letter's mails arrive, one to each recipient.")
        mails = {}
        for name, recipient in self.recipients.items():
            mails[name] = self.mail.wait_for(recipient.email, seconds=60)
            self.note(mails[name].path.name)
        self.show(mails["Ben"].text)
        return mails

    def deliveries(self) -> list:
        """The schedule as the administrator sees it, by due time."""
        found, token = [], ""
        while True:
            page = self.administrator.client.delivery.ListDeliveries(
                account_id=self.author.account_id, page_token=token)
            found += page.deliveries
            token = page.next_page_token
            if not token:
                return found

    def statuses(self) -> list:
        """The statuses in the schedule's order: the three letters, then the notes."""
        return [delivery.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number[delivery.status].name
                .removeprefix("DELIVERY_STATUS_") for delivery in self.deliveries()]

    def wait_for_statuses(self, wanted: list, seconds: float = 30) -> None:
        """In any order."""
        until = time.monotonic() + seconds
        while sorted(self.statuses()) != sorted(wanted):
            assert time.monotonic() < until, f"expected {sorted(wanted)}, found {sorted(self.statuses())}"
            time.sleep(0.1)

    @step
    def sent(self) -> bool:
        assert self.letters
        self.wait_for_statuses(["SENT"] * 3 + ["PENDING"] * 2)
        return True

    @step
    def page(self) -> str:
        """The letter's page as Ben reads it."""
        assert self.sent
        self.tell("Ben follows his link. Looking at the page changes nothing; its button opens the letter.")
        link = self.letters["Ben"].link
        self.open(link)
        assert "VIEWED" not in self.statuses(), "opening the page alone has marked the letter as viewed"
        return self.press("Open").text

    @step
    def page_source(self) -> str:
        assert self.page
        return self.browser.source

    @step
    def viewed(self) -> bool:
        assert self.page and self.page_source
        self.wait_for_statuses(["VIEWED"] + ["SENT"] * 2 + ["PENDING"] * 2)
        return True

    @step
    def acknowledged(self):
        assert self.viewed
        self.tell("He acknowledges it.")
        self.press("I received this")
        times = [delivery.acknowledge_time for delivery in self.deliveries() if delivery.HasField("acknowledge_time")]
        assert len(times) == 1
        return times[0]

    def due_times(self) -> list:
        """When the two notes are due, as instants."""
        return [delivery.due_time.ToDatetime(tzinfo=datetime.timezone.utc) for delivery in self.deliveries()[-2:]]

    def expected_due_times(self) -> list:
        """09:00 in Anna's zone: a month after the day of the confirmation, and on the specific date."""
        zone = zoneinfo.ZoneInfo(ZONE)
        anchor = self.confirmation.confirm_time.ToDatetime(tzinfo=datetime.timezone.utc).astimezone(zone).date()
        year, month = anchor.year + anchor.month // 12, anchor.month % 12 + 1
        last = (datetime.date(year + month // 12, month % 12 + 1, 1) - datetime.timedelta(days=1)).day
        nine = datetime.time(9, tzinfo=zone)
        return [datetime.datetime.combine(day, nine).astimezone(datetime.timezone.utc)
                for day in (datetime.date(year, month, min(anchor.day, last)), self.date)]

    @step
    def schedule(self) -> list:
        assert self.sent
        self.tell("The two notes wait for their days; the draft is nowhere.")
        found = self.due_times()
        for due in found:
            self.note(f"due {due:%Y-%m-%d %H:%M} UTC")
        assert found == self.expected_due_times()
        assert len(self.deliveries()) == 5
        return found

    #: All of it, in the story's order.
    STEPS = (
        "author", "group", "recipients", "prompt", "accepted", "refused_without_administrator", "designation",
        "role_mail", "administrator", "verification", "letter", "note_in_a_month", "note_on_a_date", "draft", "folder_item",
        "summary", "attempt", "code_mail", "challenge", "confirmation", "letters", "sent", "page", "viewed", "acknowledged",
        "schedule",
    )

    def walk(self, before_each=lambda step: None) -> None:
        for step in self.STEPS:
            before_each(step)
            getattr(self, step)


def told(stack: Stack, browser: Browser) -> Journey:
    """A journey that prints its story."""
    return Journey(stack, browser, tell=say)
