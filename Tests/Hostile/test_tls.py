"""TLS as strangers speak it (T13): old versions, no ALPN, certificates that are wrong, expired or foreign, half a
hello, and a certificate that changes while calls go on."""

import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import grpc
import pytest

import wire
from target import Target, eventually, size
from wire import Wire

CA_FIELDS = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n"
LEAF_FIELDS = ("basicConstraints=critical,CA:FALSE\nextendedKeyUsage={usage}\nsubjectKeyIdentifier=hash\n"
               "authorityKeyIdentifier=keyid\n"
               "subjectAltName=URI:spiffe://afterthoughts/{name},DNS:localhost,IP:127.0.0.1\n")


class Authority:
    """A certificate authority of openssl's in a folder."""

    def __init__(self, folder: Path, name: str):
        self.folder = folder / name
        self.folder.mkdir()
        self.certificate = self.folder / "ca.pem"
        key = self._key("ca")
        (self.folder / "ca.ext").write_text(CA_FIELDS)
        self._run("req", "-new", "-key", key, "-subj", f"/O={name}", "-out", self.folder / "ca.csr")
        self._run("x509", "-req", "-in", self.folder / "ca.csr", "-signkey", key, "-days", "30", "-extfile",
                  self.folder / "ca.ext", "-out", self.certificate)

    @staticmethod
    def _run(*arguments) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, stdin=subprocess.DEVNULL, capture_output=True)

    def _key(self, name: str) -> Path:
        key = self.folder / f"{name}.key"
        self._run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        return key

    def issue(self, name: str, days: int = 2, usage: str = "serverAuth,clientAuth") -> tuple:
        """Certificate and key; `days` may be negative."""
        key, request = self._key(name), self.folder / f"{name}.csr"
        extensions, certificate = self.folder / f"{name}.ext", self.folder / f"{name}.pem"
        extensions.write_text(LEAF_FIELDS.format(name=name, usage=usage))
        self._run("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        common = ["-in", request, "-out", certificate, "-extfile", extensions]
        if days < 0:
            # `ca` can date back, `x509` cannot.
            (self.folder / "index.txt").write_text("")
            (self.folder / "serial").write_text("01\n")
            (self.folder / "ca.cnf").write_text(
                f"[ca]\ndefault_ca=c\n[c]\ndatabase={self.folder}/index.txt\nserial={self.folder}/serial\n"
                f"new_certs_dir={self.folder}\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
            self._run("ca", "-batch", "-config", self.folder / "ca.cnf", "-cert", self.certificate, "-keyfile",
                      self.folder / "ca.key", "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", *common)
        else:
            self._run("x509", "-req", "-CA", self.certificate, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
                      "-days", days, *common)
        return certificate, key


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    return Authority(folder, "ours"), Authority(folder, "foreign")


@pytest.fixture(scope="module")
def identities(authorities):
    """Name to certificate and key."""
    ours, foreign = authorities
    return {"server": ours.issue("server"), "vault": ours.issue("vault"), "expired": ours.issue("expired", days=-1),
            "foreign": foreign.issue("vault"), "server-only": ours.issue("server-only", usage="serverAuth")}


@pytest.fixture
def secure(authorities, identities, tmp_path):
    """A TLS server whose certificate files the test may change."""
    certificate, key = (tmp_path / name for name in ("server.pem", "server.key"))
    shutil.copy(identities["server"][0], certificate)
    shutil.copy(identities["server"][1], key)
    arguments = ("--cert", certificate, "--key", key, "--ca", authorities[0].certificate)
    with Target(tmp_path, arguments=arguments) as target:
        target.files = certificate, key
        yield target


def context(authority: Authority, identity: tuple | None = None, alpn: tuple = ("h2",)) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=authority.certificate)
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if identity:
        made.load_cert_chain(*identity)
    return made


def answers(target: Target, made: ssl.SSLContext) -> bool:
    """Whether a call over a connection of that context is answered. TLS 1.3 tells a client of its refusal after the
    client believes to be done, so nothing short of an answer says yes."""
    try:
        with Wire(target.port, context=made) as client:
            return client.call(1, wire.echo(b"x")).status == 0
    except (ssl.SSLError, ConnectionError, AssertionError):
        return False


def s_client(target: Target, *arguments: str) -> str:
    """What openssl says of a connection; the end of its input ends it."""
    found = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{target.port}", *arguments],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=wire.PATIENCE_SECONDS)
    return found.stdout + found.stderr


def still_serves(target: Target, authority: Authority) -> None:
    assert target.process.poll() is None
    assert answers(target, context(authority))


def test_T13_TLS_1_3_with_h2_is_served(secure, authorities, identities):
    said = s_client(secure, "-alpn", "h2")
    assert "TLSv1.3" in said and "ALPN protocol: h2" in said
    assert answers(secure, context(authorities[0], identities["vault"]))
    still_serves(secure, authorities[0])


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1", "-tls1_2"])
def test_T13_older_versions_are_refused(secure, authorities, version):
    said = s_client(secure, version, "-alpn", "h2", "-cipher", "ALL:@SECLEVEL=0")
    assert "Cipher is (NONE)" in said
    still_serves(secure, authorities[0])


@pytest.mark.parametrize("arguments", [("-tls1_2", "-cipher", "NULL:@SECLEVEL=0"),
                                       ("-tls1_2", "-cipher", "RC4:3DES:@SECLEVEL=0"),
                                       ("-tls1_2", "-cipher", "AES128-SHA"), ("-groups", "secp192r1")])
def test_T13_weak_ciphers_and_groups_are_refused(secure, authorities, arguments):
    said = s_client(secure, *arguments)
    assert "Cipher is TLS_" not in said and "Cipher is ECDHE" not in said
    still_serves(secure, authorities[0])


@pytest.mark.parametrize("alpn", [(), ("http/1.1",), ("h3", "spdy/3")], ids=["none", "http/1.1", "others"])
def test_T13_no_h2_in_ALPN_is_refused(secure, authorities, alpn):
    assert not answers(secure, context(authorities[0], alpn=alpn))
    still_serves(secure, authorities[0])


@pytest.mark.parametrize("name", ["foreign", "expired", "server-only"])
def test_T13_client_certificates_that_do_not_verify_are_refused(secure, authorities, identities, name):
    for _ in range(size(5, 100)):
        assert not answers(secure, context(authorities[0], identities[name]))
    still_serves(secure, authorities[0])
    eventually(lambda: len(secure.lines("connection_ended")) >= size(5, 100), "each is logged")
    assert [line["reason"] for line in secure.lines("connection_ended")] == ["tls_handshake"] * size(5, 100)


def test_T13_a_certificate_without_its_key_is_refused(secure, authorities, identities):
    """The hand-made way: a client that offers vault's certificate and signs with another key."""
    with pytest.raises(ssl.SSLError):
        context(authorities[0], (identities["vault"][0], identities["foreign"][1]))


@pytest.mark.parametrize("opening", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), wire.PREFACE,
                                     b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28", bytes(1000)],
                         ids=["half-hello", "plaintext-h2", "plaintext-http", "alert", "zeros"])
def test_T6_T13_what_is_no_hello(authorities, identities, tmp_path, opening):
    """The same clock runs for TLS and for what follows it."""
    arguments = ("--cert", identities["server"][0], "--key", identities["server"][1])
    with Target(tmp_path, arguments=arguments, handshake=0.5, connections_per_address=1000) as target:
        attackers = [socket.create_connection(("127.0.0.1", target.port), wire.PATIENCE_SECONDS)
                     for _ in range(size(20, 200))]
        for attacker in attackers:
            attacker.sendall(opening)
        for attacker in attackers:
            try:
                while attacker.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            attacker.close()
        eventually(lambda: len(target.lines("connection_ended")) >= len(attackers), "each end is logged")
        assert len(target.lines("connection_ended")) == len(attackers)
        still_serves(target, authorities[0])


def test_T13_renegotiation_is_not_spoken(secure, authorities):
    """TLS 1.3 has none; a request for it ends the connection or is ignored, and the server lives."""
    subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{secure.port}", "-alpn", "h2"], input="R\nR\n",
                   capture_output=True, text=True, timeout=wire.PATIENCE_SECONDS)
    still_serves(secure, authorities[0])


def test_T13_key_updates_without_end_do_no_harm(secure, authorities):
    subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{secure.port}", "-alpn", "h2"], input="K\n" * 200,
                   capture_output=True, text=True, timeout=wire.PATIENCE_SECONDS)
    still_serves(secure, authorities[0])


def test_T13_a_certificate_changes_without_a_dropped_call(secure, authorities):
    """A connection from before goes on; a new one sees the new certificate."""
    def serial() -> str:
        pem = ssl.get_server_certificate(("127.0.0.1", secure.port), ca_certs=str(authorities[0].certificate))
        return subprocess.run(["openssl", "x509", "-noout", "-serial"], input=pem, capture_output=True, text=True,
                              check=True).stdout

    credentials = grpc.ssl_channel_credentials(authorities[0].certificate.read_bytes())
    with grpc.secure_channel(f"localhost:{secure.port}", credentials) as channel:
        call = channel.unary_unary("/echo.Echo/Unary", lambda raw: raw, lambda raw: raw)
        assert call(b"\x0a\x01a", timeout=wire.PATIENCE_SECONDS, wait_for_ready=True) == b"\x0a\x01a"
        seen = {serial()}
        for turn in range(size(3, 20)):
            certificate, key = authorities[0].issue(f"server-{turn}")
            shutil.copy(certificate, secure.files[0])
            shutil.copy(key, secure.files[1])
            secure.signal(signal.SIGHUP)
            eventually(lambda: serial() not in seen, "the new certificate is shown")
            seen.add(serial())
            for _ in range(20):
                assert call(b"\x0a\x01b", timeout=wire.PATIENCE_SECONDS) == b"\x0a\x01b"
