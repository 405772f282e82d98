"""Our codec against PyPI's protobuf, on random messages of every type of the API.

AFTERTHOUGHTS_CODEC_MESSAGES sets the messages of each type (AFTERTHOUGHTS_FULL=1: 100,000), AFTERTHOUGHTS_CODEC_SEED
what they are made from.

One difference is meant: a single sub-message that comes twice is refused, where PyPI merges the two; no writer sends
that. (Damaged messages, of which we refuse more than PyPI does, are the business of Tests/ProtobufTests.)"""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from processes import FULL, program

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "CProtobufTests"))

from oracle import fill  # noqa: E402

MESSAGES = int(os.environ.get("AFTERTHOUGHTS_CODEC_MESSAGES", "100000" if FULL else "100"))
SEED = os.environ.get("AFTERTHOUGHTS_CODEC_SEED", "20261130")
BATCH = 500
#: Fields of a newer version: a varint, a string, a group of bytes.
UNKNOWN = bytes.fromhex("f0f70301") + bytes.fromhex("faf70303616263") + bytes.fromhex("89f8030102030405060708")


class Peer:
    """codec-peer while it runs."""

    def __init__(self):
        self.process = subprocess.Popen(
            [program("codec-peer")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, name: str, wires: list) -> list:
        """What our codec makes of messages and writes again; None for one in which a sub-message comes twice."""
        def write():
            self.process.stdin.writelines(f"{name} {wire.hex() or '-'}\n" for wire in wires)
            self.process.stdin.write("\n")
            self.process.stdin.flush()

        writer = threading.Thread(target=write)  # neither side may wait for the other to read
        writer.start()
        lines = [self.process.stdout.readline().strip() for _ in wires]
        writer.join()
        return [self.answer(line, wire) for line, wire in zip(lines, wires)]

    def answer(self, line: str, wire: bytes) -> bytes | None:
        if line.startswith("refused") and line.endswith("appears more than once"):
            return None
        assert line and not line.startswith("refused"), f"{line}, for {wire.hex()}"
        return b"" if line == "-" else bytes.fromhex(line)


@pytest.fixture(scope="module")
def peer():
    running = Peer()
    yield running
    running.process.stdin.close()
    running.process.stdout.close()
    assert running.process.wait() == 0


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """PyPI's class for each type, by its full name."""
    path = tmp_path_factory.mktemp("codec") / "api.binpb"
    protos = [str(found.relative_to(ROOT / "proto")) for found in sorted((ROOT / "proto").rglob("*.proto"))]
    google = Path(sys.modules["grpc_tools"].__file__).parent / "_proto"
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{google}", "--include_imports",
                        f"--descriptor_set_out={path}", *protos]) == 0
    files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    return message_factory.GetMessages(files.file, pool=descriptor_pool.DescriptorPool())


def names() -> list:
    return subprocess.run([program("codec-peer"), "--list"], capture_output=True, text=True, check=True).stdout.split()


def same(found, wire: bytes, answered: bytes):
    """Whether both byte strings mean the same to PyPI, fields it does not know included."""
    left, right = found.FromString(wire), found.FromString(answered)
    return left.SerializeToString(deterministic=True) == right.SerializeToString(deterministic=True)


def single_messages(message) -> set:
    return {field.name for field, _ in message.ListFields() if field.message_type and not field.is_repeated}


def wire_forms(found, source) -> list:
    """A random message in three forms, each with whether it may be refused: as it is; with fields of a newer version;
    followed by another message, which merges them."""
    first, second = found(), found()
    fill(first, source)
    fill(second, source)
    one, two = (each.SerializeToString() for each in (first, second))
    is_doubled = bool(single_messages(first) & single_messages(second))
    return [(one, False), (one + UNKNOWN, False), (one + two, is_doubled)]


def test_wire_codec_knows_every_type_of_the_api(classes):
    ours = set(names())
    assert ours and len(ours) == len(names())
    entries = {name for name, found in classes.items() if found.DESCRIPTOR.GetOptions().map_entry}
    missing = {name for name in classes if name.startswith("afterthoughts.")} - entries - ours
    assert not missing


def test_wire_codec_agrees_with_pypi_on_every_type(peer, classes):
    for name in names():
        source, found = random.Random(f"{SEED} {name}"), classes[name]
        for begun in range(0, MESSAGES, BATCH):
            forms = [form for _ in range(min(BATCH, MESSAGES - begun)) for form in wire_forms(found, source)]
            answers = peer(name, [wire for wire, _ in forms])
            for (wire, may_be_refused), answered in zip(forms, answers):
                if answered is None:
                    assert may_be_refused, f"{name}: {wire.hex()} was refused"
                else:
                    assert same(found, wire, answered), f"{name}: {wire.hex()} became {answered.hex()}"
