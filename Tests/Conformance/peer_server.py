"""grpc.testing.TestService on grpcio, for our client to call."""

import concurrent.futures
import contextlib
import time

import grpc

from interop_protos import (
    Empty, SimpleResponse, StreamingInputCallResponse, StreamingOutputCallResponse, handlers,
)

INITIAL = "x-grpc-test-echo-initial"
TRAILING = "x-grpc-test-echo-trailing-bin"
CODES = {code.value[0]: code for code in grpc.StatusCode}


def echo(context):
    received = context.invocation_metadata()
    initial = tuple(pair for pair in received if pair[0] == INITIAL)
    if initial:
        context.send_initial_metadata(initial)
    context.set_trailing_metadata(tuple(pair for pair in received if pair[0] == TRAILING))


def fail(request, context):
    if request.HasField("response_status") and request.response_status.code != 0:
        context.abort(CODES[request.response_status.code], request.response_status.message)


def compress_next(wanted, context):
    if not wanted:
        context.disable_next_message_compression()


def outputs(request, context):
    for parameters in request.response_parameters:
        if parameters.interval_us:
            time.sleep(parameters.interval_us / 1e6)
        compress_next(parameters.compressed.value, context)
        yield StreamingOutputCallResponse(payload={"body": bytes(parameters.size)})


class TestService:
    """UnimplementedCall is left out on purpose."""

    def EmptyCall(self, request, context):
        echo(context)
        return Empty()

    def UnaryCall(self, request, context):
        echo(context)
        fail(request, context)
        compress_next(request.response_compressed.value, context)
        return SimpleResponse(payload={"body": bytes(request.response_size)})

    def StreamingOutputCall(self, request, context):
        echo(context)
        fail(request, context)
        yield from outputs(request, context)

    def StreamingInputCall(self, requests, context):
        echo(context)
        return StreamingInputCallResponse(
            aggregated_payload_size=sum(len(request.payload.body) for request in requests))

    def FullDuplexCall(self, requests, context):
        echo(context)
        for request in requests:
            fail(request, context)
            yield from outputs(request, context)

    def HalfDuplexCall(self, requests, context):
        echo(context)
        for request in list(requests):
            fail(request, context)
            yield from outputs(request, context)


@contextlib.contextmanager
def running(certificate=None, key=None):
    """Gives the port; TLS with the files given."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(8), compression=grpc.Compression.Gzip,
        options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((handlers("grpc.testing.TestService", TestService()),))
    if certificate:
        credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()
