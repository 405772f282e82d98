"""An SMTP server on loopback that keeps every mail it accepts as a file: `mail_sink.py --port N --folder PATH`.

A file is complete before the mail's acceptance is answered, and every acceptance makes a file of its own, so that the
folder shows exactly what a sender was told. Files are named "00001 to anna@example.org - Please confirm.eml".
"""

import argparse
import asyncio
import email.policy
import os
import re
import signal
from email.parser import BytesParser
from pathlib import Path

from aiosmtpd.smtp import SMTP


class Sink:
    """Accepts everything. A recipient whose local part begins with "refused." is turned away for good (550), one with
    "later." for now (451): that is how a test sees what a sender does about it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.count = max([int(path.name[:5]) for path in folder.glob("[0-9]" * 5 + " *.eml")], default=0)

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused."):
            return "550 5.1.1 no such mailbox"
        if address.startswith("later."):
            return "451 4.3.0 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        content = envelope.content
        subject = str(BytesParser(policy=email.policy.default).parsebytes(content, headersonly=True)["subject"] or "")
        self.count += 1
        name = f"{self.count:05} to {envelope.rcpt_tos[0]} - {subject}"
        name = re.sub(r"[^\w@.+,!? -]", "_", name)[:150].strip() + ".eml"
        head = f"X-Envelope-From: {envelope.mail_from}\r\nX-Envelope-To: {', '.join(envelope.rcpt_tos)}\r\n"
        temporary = self.folder / f".{self.count:05}.new"
        temporary.write_bytes(head.encode() + content)
        os.rename(temporary, self.folder / name)
        return "250 OK"


async def serve(port: int, folder: Path) -> None:
    loop = asyncio.get_running_loop()
    sink = Sink(folder)
    server = await loop.create_server(
        lambda: SMTP(sink, hostname="localhost", enable_SMTPUTF8=True, data_size_limit=32 << 20), "127.0.0.1", port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(serve(given.port, given.folder))
