"""The machinery of the journey tests itself, with stand-ins for the services."""

import smtplib
import ssl
import subprocess
import sys
import textwrap
from email.message import EmailMessage

import pytest
from rig import certificates, ports
from rig.browser import Browser
from rig.console import Fault, Steps
from rig.layout import HOST, SERVICES, TLS, Layout
from rig.stack import SINK, Stack

LAYOUT = Layout.named("rig", 600)

STAND_IN = """\
    #!{python}
    # Answers health checks over TLS as a service does, and any page as the gateway does.
    import os, pathlib, signal, sys, threading
    from concurrent import futures
    name = pathlib.Path(sys.argv[0]).name
    if sys.argv[1] != "serve":
        sys.exit(0)
    if os.path.exists(sys.argv[0] + ".broken"):
        sys.exit("DATABASE_URL: is not set")
    done = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if name == "delivery" else lambda *_: done.set())
    if name == "gateway":
        import http.server
        host, port = os.environ["WEB_LISTEN"].split(":")
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b"<title>Page</title><h1>Hello</h1><form method=post><button>Go on</button></form>"
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body if self.command == "GET" else b"<p>Done</p>")
            do_POST = do_HEAD = do_GET
        server = http.server.ThreadingHTTPServer((host, int(port)), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    else:
        import grpc
        read = lambda key: pathlib.Path(os.environ[key]).read_bytes()
        credentials = grpc.ssl_server_credentials([(read("TLS_KEY_PATH"), read("TLS_CERTIFICATE_PATH"))])
        check = grpc.unary_unary_rpc_method_handler(lambda request, context: b"\\x08\\x01")
        server = grpc.server(futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", {{"Check": check}})])
        server.add_secure_port(os.environ["LISTEN"], credentials)
        server.start()
    done.wait()
    sys.exit(0)
"""


@pytest.fixture
def programs(tmp_path):
    for name in SERVICES:
        (tmp_path / name).write_text(textwrap.dedent(STAND_IN).format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.fixture
def running(cluster, programs):
    stack = Stack(LAYOUT, programs)
    stack.prepare(fresh=True)
    stack.start(order=sorted(SERVICES, reverse=True))
    yield stack
    stack.stop(grace=0.5)


def send(to: str, subject: str) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "no-reply@afterthoughts.example", to, subject
    message["Message-ID"] = f"<{subject}@afterthoughts.example>"
    message.set_content("Open http://127.0.0.1:1/accept/abc, please.\n")
    with smtplib.SMTP(HOST, LAYOUT.smtp_port) as server:
        server.send_message(message)


def test_stack_kills_and_restarts_one_service(running):
    before = running.processes["vault"].pid
    running.kill("vault")
    assert not running.is_ready("vault") and running.is_ready("identity")
    running.restart("vault")
    assert running.is_ready("vault") and running.processes["vault"].pid != before
    assert running.dead() == {}


def test_stack_stops_all_and_names_who_had_to_be_killed(running):
    assert running.stop(grace=3) == ["delivery"]
    assert all(ports.is_free(LAYOUT.port(name)) for name in SERVICES)


def test_stack_runs_once_at_a_time(running, programs):
    with pytest.raises(Fault, match="is running already"):
        Stack(LAYOUT, programs).start()


def test_stack_ends_what_a_killed_owner_left(running, programs):
    running._lock.close()
    successor = Stack(LAYOUT, programs)
    successor.start()
    assert successor.dead() == {} and set(running.dead()) == {*SERVICES, SINK}
    successor.stop(grace=0.5)


def test_stack_says_who_holds_a_port_and_what_a_dying_service_said(cluster, programs):
    (programs / "vault.broken").touch()
    stack = Stack(LAYOUT, programs)
    with pytest.raises(Fault, match=r"(?s)vault ended with code 1.*DATABASE_URL: is not set"):
        stack.start()
    with subprocess.Popen([sys.executable, "-m", "http.server", "--bind", HOST, str(LAYOUT.port("vault"))],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        while not ports.answers(LAYOUT.port("vault")):
            assert other.poll() is None
        with pytest.raises(Fault, match=rf"in use by process {other.pid} \("):
            stack.start()
        other.terminate()
    stack.stop()


def test_mail_sink_keeps_every_mail_and_refuses_on_request(running):
    send("anna@example.org", "First letter")
    send("anna@example.org", "First letter")
    first = running.mail.wait_for("anna@example.org", "first")
    second = running.mail.wait_for("Anna@example.org", "letter")
    assert first.path != second.path and first.message_id == second.message_id
    assert first.link == "http://127.0.0.1:1/accept/abc"
    assert first.path.name == "00001 to anna@example.org - First letter.eml"
    with pytest.raises(AssertionError, match="no new mail to anna"):
        running.mail.wait_for("anna@example.org", seconds=0)
    for address, code in (("refused.b@example.org", 550), ("later.b@example.org", 451)):
        with pytest.raises(smtplib.SMTPRecipientsRefused) as refusal:
            send(address, "No")
        assert refusal.value.recipients[address][0] == code
    assert len(running.mail.all()) == 2


def test_browser_reads_a_page_and_presses_its_button(running):
    with Browser() as browser:
        browser.open(LAYOUT.public_url)
        assert browser.status == 200 and browser.title == "Page" and "Hello" in browser.text
        assert browser.press("Go on").text == "Done"
        running.kill("gateway")
        assert browser.reload().status == 0
        running.restart("gateway")
        assert browser.reload().text == "Done"


@pytest.mark.parametrize("name", SERVICES)
def test_certificate_names_one_service_and_verifies(name):
    context = ssl.create_default_context(cafile=TLS / "ca.pem")
    context.load_cert_chain(TLS / f"{name}.pem", TLS / f"{name}.key")
    names = ssl._ssl._test_decode_cert(str(TLS / f"{name}.pem"))["subjectAltName"]
    assert [value for kind, value in names if kind == "URI"] == [f"spiffe://afterthoughts/{name}"]
    assert ("IP Address", "127.0.0.1") in names and ("DNS", "localhost") in names
    assert (TLS / f"{name}.key").stat().st_mode & 0o077 == 0
    assert certificates.lasts(name)


def test_certificate_is_kept_until_it_nears_its_end(monkeypatch):
    before = (TLS / "vault.pem").read_bytes()
    certificates.ensure(Steps(1))
    assert (TLS / "vault.pem").read_bytes() == before
    monkeypatch.setattr(certificates, "RENEW_BEFORE_SECONDS", 31 * 86400)
    monkeypatch.setattr(certificates, "lasts", lambda name, real=certificates.lasts: name != "vault" or real(name))
    certificates.ensure(Steps(1))
    assert (TLS / "vault.pem").read_bytes() != before
