"""Messages and methods of the public gRPC protos in Debian's package grpc-proto, without generated modules: a generated
package `grpc.testing` would hide grpcio's own."""

import tempfile
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

FOLDER = Path("/usr/share/grpc-proto")
NAMES = ["grpc/testing/empty.proto", "grpc/testing/messages.proto", "grpc/testing/test.proto",
         "grpc/health/v1/health.proto", "grpc/reflection/v1/reflection.proto",
         "grpc/reflection/v1alpha/reflection.proto"]


def _load() -> descriptor_pb2.FileDescriptorSet:
    with tempfile.NamedTemporaryFile() as output:
        code = protoc.main(["protoc", f"-I{FOLDER}", f"--descriptor_set_out={output.name}", *NAMES])
        if code != 0:
            raise RuntimeError("protoc failed: is the package grpc-proto installed?")
        return descriptor_pb2.FileDescriptorSet.FromString(Path(output.name).read_bytes())


_FILES = _load()
_CLASSES = message_factory.GetMessages(_FILES.file, pool=descriptor_pool.DescriptorPool())

Empty = _CLASSES["grpc.testing.Empty"]
Payload = _CLASSES["grpc.testing.Payload"]
SimpleRequest = _CLASSES["grpc.testing.SimpleRequest"]
SimpleResponse = _CLASSES["grpc.testing.SimpleResponse"]
StreamingInputCallRequest = _CLASSES["grpc.testing.StreamingInputCallRequest"]
StreamingInputCallResponse = _CLASSES["grpc.testing.StreamingInputCallResponse"]
StreamingOutputCallRequest = _CLASSES["grpc.testing.StreamingOutputCallRequest"]
StreamingOutputCallResponse = _CLASSES["grpc.testing.StreamingOutputCallResponse"]
ReflectionRequest = {version: _CLASSES[f"grpc.reflection.{version}.ServerReflectionRequest"]
                     for version in ("v1", "v1alpha")}
HealthCheckRequest = _CLASSES["grpc.health.v1.HealthCheckRequest"]
HealthCheckResponse = _CLASSES["grpc.health.v1.HealthCheckResponse"]


def _methods(service: str):
    """(name, path, request class, response class, whether requests stream, whether responses stream)"""
    for file in _FILES.file:
        for found in file.service:
            if f"{file.package}.{found.name}" == service:
                for method in found.method:
                    yield (method.name, f"/{service}/{method.name}", _CLASSES[method.input_type[1:]],
                           _CLASSES[method.output_type[1:]], method.client_streaming, method.server_streaming)


class Stub:
    """A grpcio client of one service: one callable for each method, by its name."""

    def __init__(self, channel: grpc.Channel, service: str = "grpc.testing.TestService"):
        for name, path, request, response, many_in, many_out in _methods(service):
            kind = f"{'stream' if many_in else 'unary'}_{'stream' if many_out else 'unary'}"
            setattr(self, name, getattr(channel, kind)(
                path, request_serializer=request.SerializeToString, response_deserializer=response.FromString))


def handlers(service: str, implementation: object) -> grpc.GenericRpcHandler:
    """A grpcio server's handlers: those methods of the service that `implementation` has."""
    table = {}
    for name, _, request, response, many_in, many_out in _methods(service):
        if hasattr(implementation, name):
            kind = f"{'stream' if many_in else 'unary'}_{'stream' if many_out else 'unary'}_rpc_method_handler"
            table[name] = getattr(grpc, kind)(
                getattr(implementation, name), request_deserializer=request.FromString,
                response_serializer=response.SerializeToString)
    return grpc.method_handlers_generic_handler(service, table)
