"""Reads what the SMTP sink has accepted."""

import email.policy
import re
import time
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path


@dataclass(frozen=True)
class Mail:
    """One accepted mail. The same Message-ID twice means that it was sent twice."""

    path: Path
    to: str
    subject: str
    text: str
    html: str
    message_id: str
    message: EmailMessage

    @property
    def links(self) -> list:
        """The web addresses in the plain text, in order, each once."""
        return list(dict.fromkeys(address.rstrip(".,;)") for address in re.findall(r"https?://[^\s<>\"]+", self.text)))

    @property
    def link(self) -> str:
        """The mail's only link."""
        if len(self.links) != 1:
            raise AssertionError(f"{self.path.name} has {len(self.links)} links where one was expected: {self.links}")
        return self.links[0]

    @property
    def token(self) -> str:
        """The secret in the mail's only link: 32 bytes in base64url."""
        return re.search(r"[A-Za-z0-9_-]{43}", self.link).group()


def read(path: Path) -> Mail:
    message = BytesParser(policy=email.policy.default).parsebytes(path.read_bytes())
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    return Mail(
        path=path, to=str(message["x-envelope-to"]), subject=str(message["subject"]),
        text=plain.get_content() if plain else "", html=html.get_content() if html else "",
        message_id=str(message["message-id"]), message=message)


class Mailbox:
    """The sink's folder. `wait_for` hands out each mail once, so that a second wait means a second mail."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: dict[str, Mail] = {}
        self._handed_out: set[str] = set()

    def all(self, to: str = "", subject: str = "") -> list:
        """Every mail accepted so far, oldest first; `to` is an address, `subject` a part of the subject line."""
        for path in self.folder.glob("[0-9]*.eml"):
            if path.name not in self._read:
                self._read[path.name] = read(path)
        mails = [self._read[name] for name in sorted(self._read)]
        return [mail for mail in mails
                if (not to or mail.to.lower() == to.lower()) and subject.lower() in mail.subject.lower()]

    def wait_for(self, to: str, subject: str = "", seconds: float = 30) -> Mail:
        """The oldest mail that fits and was not handed out before; waits for it, then fails with what did come."""
        until = time.monotonic() + seconds
        while True:
            for mail in self.all(to, subject):
                if mail.path.name not in self._handed_out:
                    self._handed_out.add(mail.path.name)
                    return mail
            if time.monotonic() > until:
                came = "\n".join("  " + mail.path.name for mail in self.all()[-20:]) or "  nothing"
                raise AssertionError(f"no new mail to {to} about {subject!r} within {seconds:g} s; there came:\n{came}")
            time.sleep(0.05)

    def wait_until(self, condition, seconds: float = 60) -> list:
        """All mails, once `condition(mails)` is true."""
        until = time.monotonic() + seconds
        while True:
            mails = self.all()
            if condition(mails):
                return mails
            if time.monotonic() > until:
                raise AssertionError(f"after {seconds:g} s the {len(mails)} mails still do not meet the condition")
            time.sleep(0.1)
