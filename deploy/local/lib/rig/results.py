"""Reads what the test programs report."""

import json
import xml.etree.ElementTree
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Result:
    """One test: `suite` is lint, swift or python; `why` explains a failure or a skip."""

    suite: str
    name: str
    outcome: str
    why: str = ""


def from_event_stream(path: Path) -> list:
    """Swift Testing's JSON lines. A test that began and never ended is a failure: the process died in it."""
    names, began, ended, issues, skips = {}, set(), set(), {}, {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # the last line of a process that died
        payload = record["payload"]
        if record["kind"] == "test":
            if payload["kind"] == "function":
                names[payload["id"]] = payload.get("displayName") or payload["id"].split("/")[-2]
            continue
        test = payload.get("testID")
        text = "; ".join(message["text"] for message in payload.get("messages", []))
        match payload["kind"]:
            case "testStarted":
                began.add(test)
            case "testEnded":
                ended.add(test)
            case "testSkipped":
                skips[test] = text
            case "issueRecorded" if not payload["issue"].get("isKnown"):
                place = payload["issue"].get("sourceLocation") or {}
                where = f"{place.get('fileID', '?')}:{place.get('line', '?')}"
                issues.setdefault(test, []).append(f"{where}: {text}")
    results = []
    for test, name in names.items():
        if test in issues:
            results.append(Result("swift", name, FAILED, "\n".join(issues[test])))
        elif test in skips:
            results.append(Result("swift", name, SKIPPED, skips[test]))
        elif test in ended:
            results.append(Result("swift", name, PASSED))
        elif test in began:
            results.append(Result("swift", name, FAILED, "the test process ended while this test ran"))
    for test in issues.keys() - names.keys():
        results.append(Result("swift", str(test), FAILED, "\n".join(issues[test])))
    return results


def from_junit(path: Path) -> list:
    """pytest's XML report."""
    results = []
    if not path.exists():
        return results
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error")]
        skip = case.find("skipped")
        if bad:
            why = "\n".join((child.text or child.get("message") or "").strip() for child in bad)
            results.append(Result("python", case.get("name"), FAILED, why))
        elif skip is not None:
            results.append(Result("python", case.get("name"), SKIPPED, skip.get("message") or ""))
        else:
            results.append(Result("python", case.get("name"), PASSED))
    return results
