"""What the commands of deploy/local say, and how they fail."""

import shlex
import subprocess
import sys
import time


class Fault(Exception):
    """Something a person can put right: what went wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str = ""):
        super().__init__(problem if not remedy else f"{problem}\n  What to do: {remedy}")


def say(text: str = "") -> None:
    print(text, flush=True)


class Steps:
    """Numbers the long steps of a command: "[2/8] Swift build (about 8 minutes the first time) ..."."""

    def __init__(self, total: int):
        self.total = total
        self.number = 0

    def begin(self, title: str, note: str = "") -> None:
        self.number += 1
        suffix = f" ({note})" if note else ""
        say(f"[{self.number}/{self.total}] {title}{suffix} ...")

    def detail(self, text: str) -> None:
        say(f"      {text}")


def run_command(main) -> None:
    """Runs a command's main function: a Fault becomes its text and exit code 1, Ctrl-C exit code 130."""
    try:
        sys.exit(main())
    except Fault as fault:
        say()
        print(f"Failed: {fault}", file=sys.stderr, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        say()
        sys.exit(130)


def checked(command: list, remedy: str = "", **options) -> str:
    """Runs a command to its end and returns its standard output; a failure becomes a Fault with its last lines."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    try:
        done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    except FileNotFoundError as error:
        raise Fault(f"{command[0]}: there is no such program", remedy) from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        shown = shlex.join(str(part) for part in command[:6])
        raise Fault(f"{shown} ended with code {done.returncode}\n{tail}", remedy)
    return done.stdout


def watched(command: list, log, remedy: str, every: float = 20.0, **options) -> None:
    """Runs a long command with its output in the file `log`; prints its latest line now and then."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = shown = time.monotonic()
    last = ""
    with open(log, "w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", **options)
        try:
            for line in process.stdout:
                sink.write(line)
                last = line.strip() or last
                now = time.monotonic()
                if now - shown >= every:
                    shown = now
                    say(f"      {int(now - began)} s: {last[:100]}")
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        faults = [line for line in lines if "error:" in line][:20]
        tail = "\n".join(faults or lines[-30:])
        raise Fault(f"{shlex.join(str(part) for part in command[:6])} ended with code {code}\n{tail}",
                    f"{remedy} (all of its output: {log})")
