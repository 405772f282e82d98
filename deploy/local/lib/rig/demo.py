"""deploy/local/demo: walks the main journey on real parts and tells each step; ends with exit code 0."""

import argparse

from .browser import Browser
from .cluster import Cluster
from .console import Fault, say
from .journey import told
from .layout import Layout
from .stack import Stack, addresses

#: The demo's ports begin here, counted from the base: it may run beside deploy/local/up.
PORT_OFFSET = 200


def main() -> int:
    argparse.ArgumentParser(prog="deploy/local/demo", description=__doc__).parse_args()
    layout = Layout.named("demo", PORT_OFFSET)
    stack = Stack(layout)
    say("Starting the services with an empty database ...")
    try:
        stack.prepare(fresh=True)
        stack.start()
        for line in addresses(layout):
            say(line)
        with Browser() as browser:
            told(stack, browser).walk()
        if stack.dead():
            raise Fault(f"ended by themselves: {stack.dead()}", f"read the logs in {layout.logs}")
    except AssertionError as error:
        raise Fault(f"the journey did not go as it must: {error}", f"read the logs in {layout.logs}") from error
    finally:
        stack.stop()
        Cluster().stop_if_unused()
    say(f"\nThe journey is complete. The mails are in {layout.mail}.")
    return 0
