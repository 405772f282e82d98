"""deploy/local/test: sets everything up and runs every check and test.

The checks of style and generated code count as tests, one each. It closes with one line, `N passed, N failed`."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from . import cluster, packages, python_environment, requirements, setup
from .console import Fault, Steps, checked, say
from .layout import LOCAL, ROOT, VENV, VENV_PYTHON, build_configuration, scratch_path
from .results import FAILED, PASSED, SKIPPED, Result, from_event_stream, from_junit

FOLDER = LOCAL / "test"
#: Generated Swift and C keep their own form.
UNFORMATTED = ("Sources/API/", "Sources/CAPI/", "Sources/CPlugin/")
PLUGIN = "protoc-gen-swift-rpc"
LIMIT_SECONDS = 40 * 60


def lint() -> list:
    sources = [path.relative_to(ROOT) for folder in ("Sources", "services", "Tests")
               for path in sorted((ROOT / folder).rglob("*.swift"))]
    sources = [path for path in sources if not str(path).startswith(UNFORMATTED)]
    scripts = [path for path in sorted((ROOT / "deploy").rglob("*")) if path.is_file() and is_bash(path)]
    return [
        check("swift format lint --strict", ["swift", "format", "lint", "--strict", "--parallel", "Package.swift",
                                             *sources],
              "swift format -i FILE mends most of it"),
        generated(),
        check("buf lint", [VENV / "bin" / "buf", "lint"], "mend the .proto files named above"),
        check("shell scripts parse", ["bash", "-n", *scripts, ROOT / ".ci" / "run"], ""),
    ]


def is_bash(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.readline().startswith(b"#!/usr/bin/env bash")


def generated() -> Result:
    """With the plugin of the one build that everything else uses."""
    build = ["swift", "build", "--package-path", ROOT, "--scratch-path", scratch_path(), "-c", build_configuration(),
             "--product", PLUGIN]
    built = check("the protoc plugin builds", build, "mend what the compiler names")
    if built.outcome == FAILED:
        return built
    return check("generated code is up to date", [ROOT / "deploy" / "local" / "generate", "--check"],
                 "run deploy/local/generate and commit what it changes",
                 {"PLUGIN": str(scratch_path() / build_configuration() / PLUGIN)})


def check(name: str, command: list, remedy: str, environment: dict | None = None) -> Result:
    began = time.monotonic()
    try:
        checked(command, remedy, cwd=ROOT, env={**os.environ, **(environment or {})})
        outcome, why = PASSED, ""
    except (Fault, PermissionError) as fault:
        outcome, why = FAILED, str(fault)
    say(f"      {outcome}: {name} ({time.monotonic() - began:.1f} s)")
    return Result("lint", name, outcome, why)


def test_environment() -> dict:
    return {
        **os.environ,
        "AFTERTHOUGHTS_TEST_DATABASE_URL": cluster.url(cluster.SUPERUSER, "postgres"),
        "AFTERTHOUGHTS_PYTHON": str(VENV_PYTHON),
        "AFTERTHOUGHTS_LOCAL": str(LOCAL),
    }


def swift(pattern: str | None) -> list:
    stream = FOLDER / "swift.jsonl"
    stream.unlink(missing_ok=True)
    command = ["swift", "test", "--skip-build", "--package-path", ROOT, "--scratch-path", scratch_path(),
               "-c", build_configuration(), "--disable-xctest",
               "--event-stream-output-path", stream, "--event-stream-version", "0"]
    if pattern:
        command += ["--filter", pattern]
    code = run(command, FOLDER / "swift.log", "✘")
    results = from_event_stream(stream)
    if code != 0 and not any(result.outcome == FAILED for result in results):
        results.append(Result("swift", "swift test ends with code 0", FAILED,
                              f"it ended with code {code}; the end of {FOLDER / 'swift.log'}:\n"
                              + tail(FOLDER / "swift.log")))
    return results


def python(pattern: str | None) -> list:
    report = FOLDER / "python.xml"
    report.unlink(missing_ok=True)
    folders = [ROOT / "Tests" / name for name in ("Journey", "Conformance", "Hostile") if (ROOT / "Tests" / name).is_dir()]
    command = [VENV_PYTHON, "-m", "pytest", "-v", "--tb=short", f"--rootdir={ROOT}", "-c", os.devnull,
               "-p", "no:cacheprovider", "--import-mode=importlib", f"--junit-xml={report}", *folders]
    if pattern:
        command += ["-k", pattern]
    code = run(command, FOLDER / "python.log", " FAILED", " ERROR")
    results = from_junit(report)
    if code not in (0, 1, 5) or (code == 1 and not any(result.outcome == FAILED for result in results)):
        results.append(Result("python", "pytest ends with code 0 or 1", FAILED,
                              f"it ended with code {code}\n" + tail(FOLDER / "python.log")))
    return results


def run(command: list, log: Path, *marks: str) -> int:
    """Runs a test program with its output in `log`; lines with one of the marks are shown at once."""
    began = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env=test_environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)

    def give_up():
        say(f"      no end after {LIMIT_SECONDS // 60} minutes: stopping it")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(LIMIT_SECONDS, give_up)
    timer.start()
    shown, lines = began, 0
    try:
        with open(log, "w", encoding="utf-8") as sink:
            for line in process.stdout:
                sink.write(line)
                lines += 1
                now = time.monotonic()
                if any(mark in line for mark in marks):
                    say("      " + line.rstrip()[:200])
                elif now - shown > 20:
                    shown = now
                    say(f"      {now - began:.0f} s: {line.strip()[:100]}")
        return process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
    finally:
        timer.cancel()


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-30:])


def run_all(only: list, pattern: str | None) -> list:
    results = []
    try:
        if only == ["lint"]:
            steps = Steps(2)
            steps.begin("Debian packages")
            setup.own_local_folder()
            packages.ensure(steps)
            steps.begin("Python packages and stubs")
            python_environment.ensure(steps)
        else:
            setup.main(["--with-tests"] if "swift" in only else [])
    except Fault as fault:
        say(f"Failed: {fault}")
        return [Result("set-up", "deploy/local/setup succeeds", FAILED, str(fault))]
    parts = {"lint": ("style and generated code", lint), "swift": ("Swift tests", lambda: swift(pattern)),
             "python": ("Python tests", lambda: python(pattern))}
    for name in only:
        title, part = parts[name]
        say(f"Running {title} ...")
        began = time.monotonic()
        found = part()
        good = sum(result.outcome == PASSED for result in found)
        say(f"      {title}: {good} of {len(found)} passed, in {time.monotonic() - began:.0f} s")
        results += found
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/local/test", description=__doc__)
    parser.add_argument("--only", action="append", choices=["lint", "swift", "python"], help="may be repeated")
    parser.add_argument("--filter", metavar="X", help="only tests whose name matches: swift test --filter, pytest -k")
    parser.add_argument("--requirements", action="store_true", help="then list every requirement with its tests")
    parser.add_argument("--last", action="store_true", help="use the last run's results instead of running")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "results.json"
    if given.last:
        if not kept.exists():
            raise Fault("there is no last run", "leave out --last")
        results = [Result(**item) for item in json.loads(kept.read_text())]
    else:
        only = given.only or (["swift", "python"] if given.filter else ["lint", "swift", "python"])
        results = []
        try:
            results = run_all([name for name in ("lint", "swift", "python") if name in only], given.filter)
        finally:
            if VENV_PYTHON.exists() and (LOCAL / "postgres-home").exists():
                cluster.Cluster().stop_if_unused()
        results += requirements.unknown(results)
        kept.write_text(json.dumps([result.__dict__ for result in results], indent=1))
    if given.requirements:
        requirements.show(results)
    return close(results)


def excerpt(why: str) -> list:
    """The first lines of an explanation and its end, where the cause stands."""
    lines = why.strip().splitlines()
    return lines if len(lines) <= 24 else [*lines[:6], "...", *lines[-16:]]


def close(results: list) -> int:
    failed = [result for result in results if result.outcome == FAILED]
    skipped = [result for result in results if result.outcome == SKIPPED]
    for result in skipped:
        say(f"skipped: [{result.suite}] {result.name}: {result.why}")
    if failed:
        say("\nWhat failed:")
        for result in failed:
            say(f"- [{result.suite}] {result.name}")
            for line in excerpt(result.why):
                say(f"      {line}")
        say(f"Full output: {FOLDER}")
    passed = len(results) - len(failed) - len(skipped)
    say()
    say(f"{passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 0 if passed and not failed else 1
