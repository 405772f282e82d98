"""The main journey, from a registration to a letter read in a browser; told step by step."""

import textwrap

from .browser import Browser
from .client import Client
from .console import say
from .stack import Stack


class Journey:
    """Walks the steps in order; each step is a method that tells what it does and checks what it sees."""

    def __init__(self, stack: Stack, browser: Browser):
        self.stack = stack
        self.mail = stack.mail
        self.browser = browser
        self.anyone = Client(stack.layout, patience=60)
        self.number = 0

    def tell(self, text: str) -> None:
        self.number += 1
        say(f"\n{self.number}. {text}")

    def show(self, text: str) -> None:
        """A page's or mail's text, set off from the telling."""
        say(textwrap.indent(text.strip(), "   | "))

    def open(self, link: str) -> None:
        say(f"   {link}")
        self.browser.open(link)
        self.show(self.browser.text)

    def walk(self) -> None:
        for step in ():
            step()
