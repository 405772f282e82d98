"""A real SMTP server for the tests. Argument: a directory.

Prints its port. Writes each mail it takes as <n>.json in the directory. What it answers to a recipient stands in the
address: `r550@…` is refused for good, `r450x2@…` is put off twice and then taken, `lost@…` is taken, but the answer
is lost: the connection is cut.
"""
import asyncio
import email
import email.policy
import json
import os
import re
import sys
import warnings

from aiosmtpd.smtp import SMTP

warnings.simplefilter("ignore")
directory = sys.argv[1]
puts_off = {}
count = 0


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        refusal = re.match(r"r([45]\d\d)(?:x(\d+))?@", address)
        if refusal:
            tries = puts_off[address] = puts_off.get(address, 0) + 1
            if refusal.group(2) is None or tries <= int(refusal.group(2)):
                return f"{refusal.group(1)} 5.1.1 <{address}> not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        global count
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        count += 1
        body = {
            part.get_content_type(): part.get_content().replace("\r\n", "\n")
            for part in message.walk()
            if not part.is_multipart()
        }
        record = {
            "recipient": envelope.rcpt_tos[0],
            "messageID": str(message["message-id"]),
            "subject": str(message["subject"]),
            "from": str(message["from"]),
            "to": str(message["to"]),
            "date": str(message["date"]),
            "text": body.get("text/plain", ""),
            "html": body.get("text/html", ""),
        }
        path = os.path.join(directory, f"{count}.json")
        with open(path + ".part", "w") as file:
            json.dump(record, file)
        os.rename(path + ".part", path)
        if envelope.rcpt_tos[0].startswith("lost@"):
            server.transport.abort()
        return "250 OK"


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(), loop=loop), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends with the test, which holds the other end of standard input.
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
