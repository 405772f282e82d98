"""Accounts with everything that can belong to one, for tests of who may do what. No browser is needed."""

import re
from dataclasses import dataclass

from .journey import ANSWER, Journey, Person
from .stack import Stack


@dataclass
class Author:
    """Someone with recipients, a group, messages, a folder item and an administrator."""

    person: Person
    recipient_id: str
    other_recipient_id: str
    group_id: str
    message_id: str
    draft_id: str
    item_id: str
    designation_id: str

    @property
    def client(self):
        return self.person.client


def letter(recipient_ids, title="For you", body="Farewell.", **changes) -> dict:
    """The content of a letter that could be saved to the vault."""
    return {"type": "MESSAGE_TYPE_LETTER", "title": title, "body": body, "recipient_ids": recipient_ids,
            "delivery_condition": {"immediate": {}}, **changes}


class People:
    def __init__(self, stack: Stack, patience: float = 30):
        self.stack = stack
        self._journey = Journey(stack, browser=None, patience=patience)
        self.anyone = self._journey.anyone

    def register(self, name: str, email: str, verified: bool = True) -> Person:
        person = self._journey.register(name, email)
        if verified:
            self.anyone.identity.VerifyEmail(token=person.verification.token)
            self._journey.log_in(person)
        return person

    def author(self, name: str, email: str, administrator: Person) -> Author:
        person = self.register(name, email)
        local = email.split("@")[0]
        recipients, vault = person.client.recipients, person.client.vault
        ben, clara = (
            recipients.AddRecipient(name=f"{first} of {name}", email=f"{first.lower()}.{local}@example.org",
                                    relationship="RELATIONSHIP_FRIEND").recipient.recipient_id
            for first in ("Ben", "Clara"))
        group = recipients.CreateGroup(name="Family", recipient_ids=[clara]).group.group_id
        person.client.confirmation.Designate(
            administrator={"contact": {"name": administrator.name, "email": administrator.email}})
        self._journey.wait_for_mail(administrator.email)
        verification = next(entry for entry in administrator.client.confirmation.ListVerifications().verifications
                            if entry.account_id == person.account_id)
        return Author(
            person, ben, clara, group,
            message_id=vault.SaveToVault(content=letter([ben])).message.message_id,
            draft_id=vault.SaveDraft(content=letter([ben], title="Not yet")).message.message_id,
            item_id=vault.SaveFolderItem(section="FOLDER_SECTION_ACCOUNTS", title="Bank", text="12345").item.item_id,
            designation_id=verification.designation_id)

    def open_attempt(self, author: Author, administrator: Person):
        """The attempt and its mailed code."""
        attempt = administrator.client.confirmation.OpenAttempt(designation_id=author.designation_id)
        code = re.search(r"\b\d{6}\b", self._journey.wait_for_mail(administrator.email).text).group()
        return attempt, code

    def confirm(self, author: Author, administrator: Person):
        attempt, code = self.open_attempt(author, administrator)
        confirmation = administrator.client.confirmation
        confirmation.AnswerChallenge(attempt_id=attempt.attempt_id, security_answer=ANSWER, code=code)
        return confirmation.ConfirmPassing(attempt_id=attempt.attempt_id, typed_name=attempt.display_name)
