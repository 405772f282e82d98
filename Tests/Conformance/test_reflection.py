"""grpc.reflection, both versions, through grpcio."""

import grpc
import pytest
from google.protobuf import descriptor_pb2

from interop_cases import PATIENCE_SECONDS
from interop_protos import ReflectionRequest, Stub


@pytest.fixture(params=["v1", "v1alpha"])
def ask(request, plain_server):
    """Asks one question, in the fields of ServerReflectionRequest, and gives the answer."""
    version = request.param
    with grpc.insecure_channel(f"127.0.0.1:{plain_server.port}") as channel:
        stub = Stub(channel, f"grpc.reflection.{version}.ServerReflection")

        def one(**question):
            questions = iter([ReflectionRequest[version](**question)])
            [answer] = stub.ServerReflectionInfo(questions, timeout=PATIENCE_SECONDS)
            return answer

        yield one


def files(answer) -> dict:
    parsed = [descriptor_pb2.FileDescriptorProto.FromString(raw)
              for raw in answer.file_descriptor_response.file_descriptor_proto]
    return {file.name: file for file in parsed}


def test_wire_reflection_lists_what_is_served(ask):
    names = {service.name for service in ask(list_services="*").list_services_response.service}
    assert {"grpc.testing.TestService", "grpc.health.v1.Health"} <= names
    assert "grpc.testing.UnimplementedService" not in names


@pytest.mark.parametrize("symbol", [
    "grpc.testing.TestService", "grpc.testing.TestService.UnaryCall", "grpc.testing.SimpleRequest",
    "grpc.testing.PayloadType"])
def test_wire_reflection_gives_the_file_of_a_symbol(ask, symbol):
    found = files(ask(file_containing_symbol=symbol))
    wanted = "grpc/testing/test.proto" if "TestService" in symbol else "grpc/testing/messages.proto"
    assert wanted in found and found[wanted].package == "grpc.testing"


def test_wire_reflection_gives_a_file_by_its_name(ask):
    found = files(ask(file_by_filename="grpc/testing/empty.proto"))
    assert [message.name for message in found["grpc/testing/empty.proto"].message_type] == ["Empty"]


@pytest.mark.parametrize("question", [
    {"file_containing_symbol": "no.such.Thing"}, {"file_by_filename": "no/such.proto"}])
def test_wire_reflection_does_not_know_everything(ask, question):
    assert ask(**question).error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
