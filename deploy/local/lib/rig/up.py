"""deploy/local/up: runs everything until Ctrl-C."""

import argparse
import signal
import threading

from .cluster import Cluster
from .console import Fault, say
from .layout import Layout
from .stack import Stack, addresses


def main() -> int:
    argparse.ArgumentParser(prog="deploy/local/up", description=__doc__).parse_args()
    layout = Layout.local()
    stack = Stack(layout)
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    say("Starting the services ...")
    failed = None
    try:
        stack.start()
        say("Afterthoughts is running:")
        for line in addresses(layout):
            say(line)
        say("Ctrl-C stops everything.")
        reported = set()
        told = len(stack.mail.all())
        while not asked.wait(1):
            # In the file a long link may be broken over two lines; here it can be clicked.
            for mail in stack.mail.all()[told:]:
                told += 1
                say(" ".join([f"Mail to {mail.to}: {mail.subject}", *mail.links]))
            for name, code in stack.dead().items():
                if name not in reported:
                    reported.add(name)
                    say(f"{name} has ended with code {code}: see {layout.logs / name}.log")
        say("Stopping ...")
    except Fault as fault:
        failed = fault
    for name in stack.stop():
        say(f"{name} did not stop within 10 s and was killed")
    if Cluster().stop_if_unused():
        say("PostgreSQL has stopped.")
    if failed:
        raise failed
    say("Everything has stopped.")
    return 0
