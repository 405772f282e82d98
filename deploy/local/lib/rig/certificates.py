"""The local certificate authority, the services' short-lived certificates, and keys that are made once and kept."""

import base64
import os
import secrets

from .console import Fault, Steps, checked
from .files import kept, private_folder
from .layout import DATABASE_SERVICES, KEYS, SERVICES, TLS

DAYS = 30
RENEW_BEFORE_SECONDS = 10 * 86400

AUTHORITY = """\
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
O = Afterthoughts
CN = Afterthoughts local authority
[extensions]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""

SERVICE = """\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = URI:spiffe://afterthoughts/{name}, DNS:localhost, IP:127.0.0.1, IP:::1
"""


def ensure(steps: Steps) -> None:
    private_folder(TLS)
    private_folder(KEYS)
    if not (TLS / "ca.key").exists() or not lasts("ca"):
        steps.detail("making a certificate authority")
        key = new_key("ca")
        (TLS / "ca.cnf").write_text(AUTHORITY)
        checked(["openssl", "req", "-new", "-x509", "-key", key, "-config", TLS / "ca.cnf", "-days", "3650",
                 "-set_serial", serial(), "-out", TLS / "ca.pem"])
    for name in SERVICES:
        if not lasts(name):
            issue(name)
    for name in ("token-signing", "statement-signing"):
        private = KEYS / f"{name}.pem"
        if not private.exists():
            checked(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private])
    checked(["openssl", "pkey", "-in", KEYS / "statement-signing.pem", "-pubout",
             "-out", KEYS / "statement-verifying.pem"])
    for name in DATABASE_SERVICES:
        kept(KEYS / f"{name}.key-encryption", lambda: f"local-1 {random_base64()}\n")
        kept(KEYS / f"{name}.page-token", lambda: random_base64() + "\n")


def random_base64() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def serial() -> str:
    return "0x" + (b"\x40" + secrets.token_bytes(15)).hex()


def new_key(name: str):
    key = TLS / f"{name}.key"
    checked(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key])
    return key


def lasts(name: str) -> bool:
    """Whether the certificate exists, was issued by the present authority, and is valid for a good while."""
    certificate = TLS / f"{name}.pem"
    if not certificate.exists() or not (TLS / f"{name}.key").exists():
        return False
    for command in (["openssl", "x509", "-in", certificate, "-noout", "-checkend", RENEW_BEFORE_SECONDS],
                    ["openssl", "verify", "-CAfile", TLS / "ca.pem", certificate]):
        try:
            checked(command)
        except Fault:
            return False
    return True


def issue(name: str) -> None:
    """A certificate whose one URI name is the service's identity; the service reads it again when the file changes."""
    request, extensions, fresh = TLS / f"{name}.csr", TLS / f"{name}.ext", TLS / f"{name}.pem.new"
    key = TLS / f"{name}.key"
    if not key.exists():
        new_key(name)
    extensions.write_text(SERVICE.format(name=name))
    checked(["openssl", "req", "-new", "-key", key, "-subj", f"/O=Afterthoughts/CN={name}", "-out", request])
    checked(["openssl", "x509", "-req", "-in", request, "-CA", TLS / "ca.pem", "-CAkey", TLS / "ca.key",
             "-set_serial", serial(), "-days", str(DAYS), "-extfile", extensions, "-out", fresh])
    os.replace(fresh, TLS / f"{name}.pem")
    request.unlink()
    extensions.unlink()
