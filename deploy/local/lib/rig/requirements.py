"""Which requirement has a passing test: a test's name begins with the IDs that it proves."""

import re

from .console import say
from .layout import ROOT
from .results import FAILED, PASSED, Result

LIST = ROOT / "Tests" / "requirements.txt"


def all_requirements() -> dict:
    """ID to text, in the list's order."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def ids(result: Result) -> list:
    """`VA-14 CO-2 saving ...` and `test_VA_14_CO_2_saving_...` both prove VA-14 and CO-2."""
    name = result.name
    if result.suite == "python":
        name = re.sub(r"^test_", "", name)
        head = re.match(r"(?:[A-Z]{2}_\d+_|[A-Z]\d+_)*", name + "_").group()
        return [found.replace("_", "-") for found in re.findall(r"[A-Z]{2}_\d+|[A-Z]\d+", head)]
    head = re.match(r"(?:(?:[A-Z]{2}-\d+|[A-Z]\d+)[ ,:]+)*", name + " ").group()
    return re.findall(r"[A-Z]{2}-\d+|[A-Z]\d+", head)


def unknown(results: list) -> list:
    """A failure for every test that claims a requirement which is not on the list."""
    known = all_requirements()
    # T, R and D count faults and attacks, not requirements.
    return [Result("lint", f"{identifier} is a requirement", FAILED, f"claimed by {result.name!r}, not in {LIST.name}")
            for result in results for identifier in ids(result)
            if identifier not in known and identifier[0] + identifier[1:].strip("0123456789") not in ("T", "R", "D")]


def show(results: list) -> None:
    tests = {identifier: [] for identifier in all_requirements()}
    for result in results:
        for identifier in ids(result):
            tests.setdefault(identifier, []).append(result)
    known = all_requirements()
    proven = [name for name in known if any(result.outcome == PASSED for result in tests[name])]
    open_ones = [name for name in known if name not in proven]
    say(f"\nRequirements with a passing test ({len(proven)} of {len(known)}):")
    for name in proven:
        say(f"{name} {known[name]}")
        for result in tests[name]:
            say(f"    {result.outcome}: {result.name}")
    say(f"\nRequirements without a passing test ({len(open_ones)}):")
    for name in open_ones:
        failing = "".join(f"\n    {result.outcome}: {result.name}" for result in tests[name])
        say(f"{name} {known[name]}{failing}")
