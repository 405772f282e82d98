"""Small files with secrets in them: made once, readable by their owner only."""

import os
from pathlib import Path


def private_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Replaces the file's content at once, mode 0600."""
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def kept(path: Path, make) -> str:
    """The file's text; `make()` provides it the first time."""
    if not path.exists():
        private_folder(path.parent)
        write_private(path, make())
    return path.read_text(encoding="utf-8").strip()
