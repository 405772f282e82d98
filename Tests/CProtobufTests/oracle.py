"""Random messages of kinds.proto as PyPI's protobuf writes and reads them.

oracle.py SEED COUNT prints lines of: wire form in hex, then what the message holds or "refused". Of each message there
is the true form and one damaged by a few bytes; messages of the second kind begin their line with "damaged". Where a
damaged map entry holds a field besides its key and value the line ends in "differs": PyPI's protobuf then takes the
entry out of the map, other implementations take the field out of the entry.
"""

import random
import struct
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, message_factory, unknown_fields
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError
from grpc_tools import protoc


def kinds_class():
    here = Path(__file__).resolve().parent
    with tempfile.NamedTemporaryFile() as output:
        if protoc.main(["protoc", f"-I{here}", f"--descriptor_set_out={output.name}", str(here / "kinds.proto")]) != 0:
            sys.exit("protoc failed")
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(output.name).read_bytes())
    return message_factory.GetMessages(files.file)["protobuf.tests.v1.Kinds"]


def integer(source, low, high):
    choice = source.random()
    if choice < 0.3:
        return source.choice([low, high, 0, 1, 127, 128])
    return source.randint(max(low, -(1 << 12)), min(high, 1 << 12)) if choice < 0.6 else source.randint(low, high)


def text(source):
    return "".join(
        source.choice(["a", "b", " ", "\n", "é", "ß", "漢", "🙂", "\u0301", "\U0010ffff"])
        for _ in range(source.choice([0, 1, 5, 15, 16, 60]))
    )


def scalar(field, source):
    match field.type:
        case F.TYPE_DOUBLE:
            return source.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), 1e300, 5e-324])
        case F.TYPE_FLOAT:
            return source.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), 2.0**-149])
        case F.TYPE_INT32 | F.TYPE_SINT32 | F.TYPE_SFIXED32:
            return integer(source, -(1 << 31), (1 << 31) - 1)
        case F.TYPE_INT64 | F.TYPE_SINT64 | F.TYPE_SFIXED64:
            return integer(source, -(1 << 63), (1 << 63) - 1)
        case F.TYPE_UINT32 | F.TYPE_FIXED32:
            return integer(source, 0, (1 << 32) - 1)
        case F.TYPE_UINT64 | F.TYPE_FIXED64:
            return integer(source, 0, (1 << 64) - 1)
        case F.TYPE_BOOL:
            return source.random() < 0.5
        case F.TYPE_ENUM:
            return source.choice([0, 1, 5, -2, 77, -1])
        case F.TYPE_STRING:
            return text(source)
        case F.TYPE_BYTES:
            return source.randbytes(source.choice([0, 1, 7, 130]))


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def fill(message, source):
    for field in message.DESCRIPTOR.fields:
        if source.random() < 0.7:
            continue
        if is_map(field):
            entry = getattr(message, field.name)
            key, value = field.message_type.fields
            for _ in range(source.randint(1, 4)):
                if value.message_type is not None:
                    fill(entry[scalar(key, source)], source)
                else:
                    entry[scalar(key, source)] = scalar(value, source)
        elif field.is_repeated:
            for _ in range(source.choice([1, 2, 5])):
                if field.message_type is not None:
                    fill(getattr(message, field.name).add(), source)
                else:
                    getattr(message, field.name).append(scalar(field, source))
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            fill(getattr(message, field.name), source)
        else:
            setattr(message, field.name, scalar(field, source))


def show(field, value):
    if value != value:
        return "nan"
    match field.type:
        case F.TYPE_MESSAGE:
            return holds(value)
        case F.TYPE_DOUBLE:
            return "%016x" % struct.unpack("<Q", struct.pack("<d", value))
        case F.TYPE_FLOAT:
            return "%08x" % struct.unpack("<I", struct.pack("<f", value))
        case F.TYPE_STRING:
            return value.encode().hex()
        case F.TYPE_BYTES:
            return value.hex()
        case F.TYPE_BOOL:
            return "true" if value else "false"
    return str(value)


def holds(message):
    parts = []
    for field, value in sorted(message.ListFields(), key=lambda pair: pair[0].number):
        if is_map(field):
            key, inner = field.message_type.fields
            shown = "[" + ",".join(sorted(show(key, k) + ":" + show(inner, v) for k, v in value.items())) + "]"
        elif field.is_repeated:
            shown = "[" + ",".join(show(field, each) for each in value) + "]"
        else:
            shown = show(field, value)
        parts.append(field.name + "=" + shown)
    return "{" + ";".join(parts) + "}"


def damaged(wire, source):
    changed = bytearray(wire)
    for _ in range(source.randint(1, 3)):
        if changed:
            place = source.randrange(len(changed))
            choice = source.random()
            if choice < 0.5:
                changed[place] = source.randrange(256)
            elif choice < 0.7:
                del changed[place:]
            else:
                changed.insert(place, source.randrange(256))
    return bytes(changed)


def verdict(kinds, wire):
    try:
        message = kinds.FromString(wire)
    except DecodeError:
        return "refused"
    maps = {field.number for field in kinds.DESCRIPTOR.fields if is_map(field)}
    if any(field.field_number in maps for field in unknown_fields.UnknownFieldSet(message)):
        return "differs"
    return holds(message)


def main():
    source = random.Random(int(sys.argv[1]))
    kinds = kinds_class()
    for _ in range(int(sys.argv[2])):
        message = kinds()
        fill(message, source)
        wire = message.SerializeToString(deterministic=True)
        print(wire.hex() or "-", holds(message))
        changed = damaged(wire, source)
        print("damaged", changed.hex() or "-", verdict(kinds, changed))


if __name__ == "__main__":
    main()
