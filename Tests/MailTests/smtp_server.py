"""A real SMTP server for the tests. Arguments: a directory, then options.

Prints its port. Writes each mail it takes as <n>.json in the directory, decoded by Python's own parser. A recipient
named like `r550@…` is refused with that code, a subject that holds `data554` at the end of the body.
Options: --auth asks for user `mailer`, password `secret`; --tls FILE offers STARTTLS with that certificate and key.
"""
import asyncio
import email
import email.header
import email.policy
import email.utils
import json
import os
import re
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

warnings.simplefilter("ignore")
directory = sys.argv[1]
options = sys.argv[2:]
counts = {"connections": 0, "mails": 0}


class Server(SMTP):
    def connection_made(self, transport):
        counts["connections"] += 1
        super().connection_made(transport)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        refusal = re.match(r"r([45]\d\d)@", address)
        if refusal:
            return f"{refusal.group(1)} 5.1.1 <{address}> is not wanted here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        if "data554" in str(message["subject"]):
            return "554 5.7.1 not this one"
        counts["mails"] += 1
        body = {
            part.get_content_type(): part.get_content().replace("\r\n", "\n")
            for part in message.walk()
            if not part.is_multipart()
        }
        record = {
            "sender": envelope.mail_from,
            "recipients": envelope.rcpt_tos,
            "hello": session.host_name,
            "encrypted": session.ssl is not None,
            "connections": counts["connections"],
            "type": message.get_content_type(),
            "headers": {name.lower(): str(value) for name, value in message.items()},
            "toName": display_name(envelope.content, "to"),
            "text": body.get("text/plain", ""),
            "html": body.get("text/html", ""),
            "lineMax": max(len(line) for line in envelope.content.split(b"\r\n")),
            "isAscii": envelope.content.isascii(),
        }
        path = os.path.join(directory, f"{counts['mails']}.json")
        with open(path + ".part", "w") as file:
            json.dump(record, file)
        os.rename(path + ".part", path)
        return "250 OK"


def display_name(content, field):
    # By the older functions: the newer header parser keeps the space between two encoded words of a name.
    raw = email.message_from_bytes(content)[field]
    return str(email.header.make_header(email.header.decode_header(email.utils.parseaddr(raw)[0])))


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"mailer", b"secret"))


async def main():
    settings = {"auth_require_tls": False}
    if "--auth" in options:
        settings.update(authenticator=authenticate, auth_required=True)
    if "--tls" in options:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options[options.index("--tls") + 1])
        settings.update(tls_context=context)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(Handler(), loop=loop, **settings), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends with the test, which holds the other end of standard input.
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(main())
