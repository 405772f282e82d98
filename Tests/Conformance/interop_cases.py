"""The client's side of gRPC's interoperability cases on grpcio, from their public descriptions. One function for each
case; it takes a way to open channels and fails by assertion."""

import queue
from contextlib import contextmanager

import grpc

from interop_protos import (
    Empty, SimpleRequest, StreamingInputCallRequest, StreamingOutputCallRequest, Stub,
)
from processes import SOAK_CALLS

RESPONSE_SIZES = [31415, 9, 2653, 58979]
REQUEST_SIZES = [27182, 8, 1828, 45904]
LARGE_RESPONSE, LARGE_REQUEST = 314159, 271828
INITIAL = "x-grpc-test-echo-initial"
TRAILING = "x-grpc-test-echo-trailing-bin"
#: So that a fault fails a test instead of holding it up; no case is about this time.
PATIENCE_SECONDS = 60


class Requests:
    """The requests of a stream, sent one at a time."""

    def __init__(self):
        self._queue = queue.Queue()

    def send(self, request):
        self._queue.put(request)

    def end(self):
        self._queue.put(None)

    def __iter__(self):
        return iter(self._queue.get, None)


@contextmanager
def fails_with(code: grpc.StatusCode, message: str | None = None):
    try:
        yield
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()}: {error.details()}"
        assert message is None or error.details() == message
    else:
        raise AssertionError(f"expected {code}, but the call went well")


def large_request(**fields):
    return SimpleRequest(response_size=LARGE_RESPONSE, payload={"body": bytes(LARGE_REQUEST)}, **fields)


def output_request(response_size: int, request_size: int, **fields):
    return StreamingOutputCallRequest(
        response_parameters=[{"size": response_size}], payload={"body": bytes(request_size)}, **fields)


def large_call(stub: Stub, **options):
    response = stub.UnaryCall(large_request(), timeout=PATIENCE_SECONDS, **options)
    assert response.payload.body == bytes(LARGE_RESPONSE)


def sizes(responses) -> list:
    return [len(response.payload.body) for response in responses]


def empty_unary(channel):
    assert Stub(channel()).EmptyCall(Empty(), timeout=PATIENCE_SECONDS) == Empty()


def large_unary(channel):
    large_call(Stub(channel()))


def client_streaming(channel):
    requests = (StreamingInputCallRequest(payload={"body": bytes(size)}) for size in REQUEST_SIZES)
    response = Stub(channel()).StreamingInputCall(requests, timeout=PATIENCE_SECONDS)
    assert response.aggregated_payload_size == 74922


def server_streaming(channel):
    request = StreamingOutputCallRequest(response_parameters=[{"size": size} for size in RESPONSE_SIZES])
    assert sizes(Stub(channel()).StreamingOutputCall(request, timeout=PATIENCE_SECONDS)) == RESPONSE_SIZES


def ping_pong(channel):
    requests = Requests()
    responses = Stub(channel()).FullDuplexCall(iter(requests), timeout=PATIENCE_SECONDS)
    for request_size, response_size in zip(REQUEST_SIZES, RESPONSE_SIZES):
        requests.send(output_request(response_size, request_size))
        assert next(responses).payload.body == bytes(response_size)
    requests.end()
    assert sizes(responses) == []


def empty_stream(channel):
    assert sizes(Stub(channel()).FullDuplexCall(iter([]), timeout=PATIENCE_SECONDS)) == []


def half_duplex(channel):
    requests = [output_request(there, here) for there, here in zip(RESPONSE_SIZES, REQUEST_SIZES)]
    assert sizes(Stub(channel()).HalfDuplexCall(iter(requests), timeout=PATIENCE_SECONDS)) == RESPONSE_SIZES


def client_compressed_unary(channel):
    stub = Stub(channel())
    wants = large_request(expect_compressed={"value": True})
    with fails_with(grpc.StatusCode.INVALID_ARGUMENT):
        stub.UnaryCall(wants, timeout=PATIENCE_SECONDS, compression=grpc.Compression.NoCompression)
    response = stub.UnaryCall(wants, timeout=PATIENCE_SECONDS, compression=grpc.Compression.Gzip)
    assert response.payload.body == bytes(LARGE_RESPONSE)
    plain = large_request(expect_compressed={"value": False})
    response = stub.UnaryCall(plain, timeout=PATIENCE_SECONDS, compression=grpc.Compression.NoCompression)
    assert response.payload.body == bytes(LARGE_RESPONSE)


def server_compressed_unary(channel):
    stub = Stub(channel())
    for compressed in (True, False):
        response = stub.UnaryCall(
            large_request(response_compressed={"value": compressed}), timeout=PATIENCE_SECONDS)
        assert response.payload.body == bytes(LARGE_RESPONSE)


def client_compressed_streaming(channel):
    """grpcio compresses all messages of a stream or none; the mixed one is a test of the wire."""
    stub = Stub(channel())
    requests = [StreamingInputCallRequest(expect_compressed={"value": True}, payload={"body": bytes(size)})
                for size in (27182, 45904)]
    with fails_with(grpc.StatusCode.INVALID_ARGUMENT):
        stub.StreamingInputCall(iter(requests), timeout=PATIENCE_SECONDS, compression=grpc.Compression.NoCompression)
    response = stub.StreamingInputCall(iter(requests), timeout=PATIENCE_SECONDS, compression=grpc.Compression.Gzip)
    assert response.aggregated_payload_size == 73086


def server_compressed_streaming(channel):
    request = StreamingOutputCallRequest(response_parameters=[
        {"size": 31415, "compressed": {"value": True}}, {"size": 92653, "compressed": {"value": False}}])
    assert sizes(Stub(channel()).StreamingOutputCall(request, timeout=PATIENCE_SECONDS)) == [31415, 92653]


def custom_metadata(channel):
    stub = Stub(channel())
    sent = ((INITIAL, "test_initial_metadata_value"), (TRAILING, b"\xab\xab\xab"))
    response, call = stub.UnaryCall.with_call(large_request(), metadata=sent, timeout=PATIENCE_SECONDS)
    assert len(response.payload.body) == LARGE_RESPONSE
    streaming = stub.FullDuplexCall(
        iter([output_request(LARGE_RESPONSE, LARGE_REQUEST)]), metadata=sent, timeout=PATIENCE_SECONDS)
    assert sizes(streaming) == [LARGE_RESPONSE]
    for finished in (call, streaming):
        assert dict(finished.initial_metadata()).get(INITIAL) == "test_initial_metadata_value"
        assert dict(finished.trailing_metadata()).get(TRAILING) == b"\xab\xab\xab"


def status_code_and_message(channel):
    stub = Stub(channel())
    status = {"code": 2, "message": "test status message"}
    with fails_with(grpc.StatusCode.UNKNOWN, status["message"]):
        stub.UnaryCall(SimpleRequest(response_status=status), timeout=PATIENCE_SECONDS)
    with fails_with(grpc.StatusCode.UNKNOWN, status["message"]):
        list(stub.FullDuplexCall(iter([StreamingOutputCallRequest(response_status=status)]), timeout=PATIENCE_SECONDS))


def special_status_message(channel):
    text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
    with fails_with(grpc.StatusCode.UNKNOWN, text):
        Stub(channel()).UnaryCall(
            SimpleRequest(response_status={"code": 2, "message": text}), timeout=PATIENCE_SECONDS)


def unimplemented_method(channel):
    with fails_with(grpc.StatusCode.UNIMPLEMENTED):
        Stub(channel()).UnimplementedCall(Empty(), timeout=PATIENCE_SECONDS)


def unimplemented_service(channel):
    with fails_with(grpc.StatusCode.UNIMPLEMENTED):
        Stub(channel(), "grpc.testing.UnimplementedService").UnimplementedCall(Empty(), timeout=PATIENCE_SECONDS)


def cancel_after_begin(channel):
    requests = Requests()
    call = Stub(channel()).StreamingInputCall.future(iter(requests), timeout=PATIENCE_SECONDS)
    call.cancel()
    assert call.cancelled()
    assert call.code() == grpc.StatusCode.CANCELLED
    requests.end()


def cancel_after_first_response(channel):
    requests = Requests()
    call = Stub(channel()).FullDuplexCall(iter(requests), timeout=PATIENCE_SECONDS)
    requests.send(output_request(31415, 27182))
    assert len(next(call).payload.body) == 31415
    call.cancel()
    with fails_with(grpc.StatusCode.CANCELLED):
        next(call)
    requests.end()


def timeout_on_sleeping_server(channel):
    requests = Requests()
    requests.send(StreamingOutputCallRequest(payload={"body": bytes(27182)}))
    with fails_with(grpc.StatusCode.DEADLINE_EXCEEDED):
        list(Stub(channel()).FullDuplexCall(iter(requests), timeout=0.001))
    requests.end()


def rpc_soak(channel):
    stub = Stub(channel())
    for _ in range(SOAK_CALLS):
        large_call(stub)


def channel_soak(channel):
    for _ in range(SOAK_CALLS):
        opened = channel()
        large_call(Stub(opened))
        opened.close()


CASES = [
    empty_unary, large_unary, client_streaming, server_streaming, ping_pong, empty_stream, half_duplex,
    client_compressed_unary, server_compressed_unary, client_compressed_streaming, server_compressed_streaming,
    custom_metadata, status_code_and_message, special_status_message, unimplemented_method, unimplemented_service,
    cancel_after_begin, cancel_after_first_response, timeout_on_sleeping_server, rpc_soak, channel_soak,
]
