"""`python -m rig COMMAND`: what the scripts of deploy/local call."""

import importlib
import sys

from .console import run_command

command = sys.argv.pop(1)
run_command(importlib.import_module(f".{command}", __package__).main)
