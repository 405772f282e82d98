"""The environment that each service gets."""

from . import files
from .layout import DATABASE_SERVICES, HOST, KEYS, SERVICES, TLS, Layout

MAIL_FROM = "no-reply@afterthoughts.example"


def environment(layout: Layout, name: str) -> dict:
    values = {
        "ADMIN_LISTEN": layout.admin_address(name),
        "LOG_LEVEL": "info",
        "LOOPS": "1",
        "PUBLIC_URL": layout.public_url,
        "TLS_CA_PATH": str(TLS / "ca.pem"),
        "TLS_CERTIFICATE_PATH": str(TLS / f"{name}.pem"),
        "TLS_KEY_PATH": str(TLS / f"{name}.key"),
    }
    for other in DATABASE_SERVICES:
        values[f"{other.upper()}_ADDRESS"] = layout.address(other)
    if name in DATABASE_SERVICES:
        values["LISTEN"] = layout.address(name)
        values["DATABASE_URL_FILE"] = str(layout.secrets / f"{name}.database-url")
        values["MIGRATE_DATABASE_URL_FILE"] = str(layout.secrets / f"{name}.migrate-database-url")
        values["KEY_ENCRYPTION_KEYS_FILE"] = str(KEYS / f"{name}.key-encryption")
        values["PAGE_TOKEN_KEY_FILE"] = str(KEYS / f"{name}.page-token")
    match name:
        case "identity":
            values["TOKEN_SIGNING_KEY_FILE"] = str(KEYS / "token-signing.pem")
        case "vault":
            values["STATEMENT_VERIFYING_KEY_FILE"] = str(KEYS / "statement-verifying.pem")
        case "confirmation":
            values["STATEMENT_SIGNING_KEY_FILE"] = str(KEYS / "statement-signing.pem")
        case "notifications":
            values["SMTP_URL"] = f"smtp://{HOST}:{layout.smtp_port}"
            values["MAIL_FROM"] = MAIL_FROM
        case "gateway":
            values["WEB_LISTEN"] = layout.address("gateway")
    return dict(sorted(values.items()))


def write(layout: Layout) -> None:
    """One file of KEY=VALUE lines for each service, as `systemd` and `env` read them."""
    files.private_folder(layout.environments)
    for name in SERVICES:
        lines = [f"{key}={value}\n" for key, value in environment(layout, name).items()]
        files.write_private(layout.environments / f"{name}.env", "".join(lines))
