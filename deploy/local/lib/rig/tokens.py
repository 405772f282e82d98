"""Makes access tokens as identity does, and as a forger would."""

import base64
import hashlib
import json
import os
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

from .layout import KEYS


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data: bytes | None = None) -> bytes:
    return subprocess.run(["openssl", *map(str, arguments)], input=data, capture_output=True, check=True).stdout


def sign(key: Path, data: bytes) -> bytes:
    """Ed25519; OpenSSL wants the data in a file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file.name)


def public_bytes(key: Path) -> bytes:
    return openssl("pkey", "-in", key, "-pubout", "-outform", "DER")[-32:]


def key_id(key: Path) -> str:
    return hashlib.sha256(public_bytes(key)).hexdigest()[:16]


def new_key(folder: Path) -> Path:
    path = folder / f"{uuid.uuid4()}.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", path)
    os.chmod(path, 0o600)
    return path


def token(account_id: str, issuer: str, key: Path = KEYS / "token-signing.pem", header: dict | None = None,
          signature: bytes | None = None, age: int = 0, **claims) -> str:
    """A token signed with `key` and made `age` seconds ago; header fields and claims may be replaced one by one."""
    now = int(time.time()) - age
    head = {"alg": "EdDSA", "kid": key_id(key), "typ": "JWT", **(header or {})}
    body = {"iss": issuer, "aud": "afterthoughts", "sub": account_id, "sid": str(uuid.uuid4()), "ev": True,
            "iat": now, "exp": now + 600, **claims}
    signed = ".".join(encode(json.dumps(part, separators=(",", ":")).encode()) for part in (head, body))
    return signed + "." + encode(sign(key, signed.encode()) if signature is None else signature)
