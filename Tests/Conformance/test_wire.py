"""The wire, row by row, at our server: frames made by hand, answers read byte by byte."""

import gzip
import re
import struct

import pytest
from google.rpc import error_details_pb2, status_pb2
from hyperframe.frame import (
    ContinuationFrame, DataFrame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame,
)

import handmade
from interop_protos import (
    Empty, HealthCheckRequest, HealthCheckResponse, SimpleRequest, SimpleResponse, StreamingInputCallRequest,
    StreamingInputCallResponse, StreamingOutputCallRequest, StreamingOutputCallResponse,
)
from processes import interop_server
from handmade import decoded, headers, message, messages, unpadded

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED = 0, 3, 4, 5, 8
UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 12, 13, 14
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 7, 8, 11
INITIAL = "x-grpc-test-echo-initial"
TRAILING = "x-grpc-test-echo-trailing-bin"
DETAILS = "grpc-status-details-bin"
STREAMS_MAX = 100
MESSAGE_BYTES_MAX = 4 << 20
HEADER_BYTES_MAX = 8 << 10

EMPTY = message(b"")


def simple(**fields) -> bytes:
    return message(SimpleRequest(**fields).SerializeToString())


def output(*sizes: int, **fields) -> bytes:
    request = StreamingOutputCallRequest(response_parameters=[{"size": size} for size in sizes], **fields)
    return message(request.SerializeToString())


def details(answer) -> status_pb2.Status:
    return status_pb2.Status.FromString(decoded(answer.first(DETAILS)))


# Requests


@pytest.mark.parametrize("content_type", [
    "application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8", "application/grpc+proto; a=b"])
def test_wire_request_takes_every_content_type_of_grpc(connection, content_type):
    answer = connection.call(headers("EmptyCall", content_type=content_type), EMPTY)
    assert (answer.http_status, answer.status) == ("200", OK)


@pytest.mark.parametrize("content_type", [
    "text/html", "application/json", "application/grpcx", "application/grpc+json", "application/grpc-web", ""])
def test_wire_request_of_another_content_type_gets_415(connection, content_type):
    answer = connection.call(headers("EmptyCall", content_type=content_type), EMPTY)
    assert answer.http_status == "415" and answer.is_trailers_only


def test_wire_request_without_content_type_gets_415(connection):
    answer = connection.call(headers("EmptyCall", without=("content-type",)), EMPTY)
    assert answer.http_status == "415"


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_wire_request_with_another_verb_gets_405_and_unimplemented(connection, verb):
    answer = connection.call(headers("EmptyCall", verb=verb))
    assert (answer.http_status, answer.status) == ("405", UNIMPLEMENTED)


def test_wire_request_with_te_other_than_trailers_is_a_protocol_error(connection):
    answer = connection.call(headers("EmptyCall", te="gzip"), EMPTY)
    assert answer.reset == PROTOCOL_ERROR


@pytest.mark.parametrize("path", [
    "/grpc.testing.TestService/NoSuchCall", "/grpc.testing.TestService/UnimplementedCall", "/no.such.Service/EmptyCall",
    "/grpc.testing.TestService/", "/grpc.testing.TestService/EmptyCall/", "/grpc.testing.testservice/EmptyCall", "/"])
def test_wire_request_for_what_is_not_served_is_unimplemented(connection, path):
    answer = connection.call(headers(path=path), EMPTY)
    assert (answer.http_status, answer.status) == ("200", UNIMPLEMENTED)
    assert answer.is_trailers_only


@pytest.mark.parametrize("name", ["grpc-previous-rpc-attempts", "grpc-tags-bin", "grpc-unheard-of"])
def test_wire_request_with_a_reserved_field_is_served(connection, name):
    assert connection.call(headers("EmptyCall", (name, "1")), EMPTY).status == OK


# Frames


def test_wire_frame_may_be_cut_at_any_edge(connection):
    whole = simple(response_size=3, payload={"body": b"0123456789"})
    for edge in range(len(whole) + 1):
        answer = connection.call(headers(), whole[:edge], whole[edge:])
        assert answer.status == OK, edge
        [(flag, body)] = messages(answer.body)
        assert flag == 0 and SimpleResponse.FromString(body).payload.body == bytes(3)


def test_wire_frame_may_come_byte_by_byte(connection):
    whole = simple(response_size=1, payload={"body": b"0123456789"})
    answer = connection.call(headers(), *[bytes([byte]) for byte in whole])
    assert answer.status == OK


def test_wire_frame_may_be_padded_and_followed_by_nothing(connection):
    whole = simple(response_size=1)
    stream = connection.begin(headers())
    padded = DataFrame(stream, whole[:4], pad_length=200, flags=["PADDED"])
    connection.send(padded, DataFrame(stream, b""), DataFrame(stream, whole[4:]), DataFrame(stream, b""))
    connection.data(stream, b"")
    assert connection.answer(stream).status == OK


@pytest.mark.parametrize("edge", [0, 1, 4, 5, 6, 11, 12, 13, 17, 23])
def test_wire_frame_edges_of_a_stream_are_no_message_edges(connection, edge):
    requests = [StreamingInputCallRequest(payload={"body": bytes(size)}) for size in (2, 0, 3)]
    whole = b"".join(message(request.SerializeToString()) for request in requests)
    answer = connection.call(headers("StreamingInputCall"), whole[:edge], whole[edge:])
    assert answer.status == OK
    [(_, body)] = messages(answer.body)
    assert StreamingInputCallResponse.FromString(body).aggregated_payload_size == 5


def test_wire_frame_header_block_may_be_continued(connection):
    stream = connection.open()
    block = connection.encoder.encode(headers("EmptyCall", ("x-long", "a" * 100)))
    connection.send(HeadersFrame(stream, block[:5]), ContinuationFrame(stream, block[5:6]),
                    ContinuationFrame(stream, block[6:], flags=["END_HEADERS"]))
    connection.data(stream, EMPTY)
    assert connection.answer(stream).status == OK


@pytest.mark.parametrize("flag", [2, 3, 0x80, 0xFF])
def test_wire_frame_with_an_unknown_flag_is_internal(connection, flag):
    assert connection.call(headers("EmptyCall"), message(b"", flag)).status == INTERNAL


@pytest.mark.parametrize("kept", [1, 4, 5, 6])
def test_wire_frame_that_is_cut_off_is_internal(connection, kept):
    assert connection.call(headers(), simple(response_size=1)[:kept]).status == INTERNAL


@pytest.mark.parametrize("method, pieces", [
    ("UnaryCall", []), ("UnaryCall", [b""]), ("UnaryCall", [EMPTY + EMPTY]), ("UnaryCall", [EMPTY, EMPTY]),
    ("StreamingOutputCall", []), ("StreamingOutputCall", [EMPTY + EMPTY])])
def test_wire_frame_count_of_a_single_request_is_one(connection, method, pieces):
    assert connection.call(headers(method), *pieces).status == UNIMPLEMENTED


def test_wire_frame_that_is_no_such_message_is_an_invalid_argument(connection):
    for body in (b"\x0a\x05abc", b"\x08", b"\xff" * 11):
        assert connection.call(headers(), message(body)).status == INVALID_ARGUMENT


def test_wire_frame_at_the_limit_is_served(connection):
    body = SimpleRequest(payload={"body": bytes(MESSAGE_BYTES_MAX - 100)})
    body.payload.body += bytes(MESSAGE_BYTES_MAX - body.ByteSize())
    assert body.ByteSize() == MESSAGE_BYTES_MAX
    stream = connection.begin(headers())
    send_windowed(connection, stream, message(body.SerializeToString()))
    assert connection.answer(stream).status == OK


def send_windowed(connection, stream: int, body: bytes):
    """Sends a body within the server's windows."""
    settings = connection.until(lambda frame: isinstance(frame, SettingsFrame) and "ACK" not in frame.flags)
    windows = {0: 65535, stream: settings.settings.get(SettingsFrame.INITIAL_WINDOW_SIZE, 65535)}
    while body:
        room = min(len(body), 16384, *windows.values())
        if room == 0:
            frame = connection.step()
            if hasattr(frame, "window_increment") and frame.stream_id in windows:
                windows[frame.stream_id] += frame.window_increment
            continue
        connection.data(stream, body[:room], end=room == len(body))
        body = body[room:]
        for key in windows:
            windows[key] -= room


def test_wire_frame_above_the_limit_is_refused_by_its_header_alone(connection):
    stream = connection.begin(headers())
    connection.data(stream, struct.pack(">BI", 0, MESSAGE_BYTES_MAX + 1), end=False)
    answer = connection.answer(stream)
    assert answer.status == RESOURCE_EXHAUSTED
    assert connection.call(headers("EmptyCall"), EMPTY).status == OK


# Responses


def test_wire_response_is_headers_messages_and_trailers(connection):
    answer = connection.call(headers(), simple(response_size=7))
    initial, trailing = answer.blocks
    assert initial[:2] == [(":status", "200"), ("content-type", "application/grpc")]
    assert "grpc-status" not in dict(initial)
    assert trailing == [("grpc-status", "0")]
    [(flag, body)] = messages(answer.body)
    assert flag == 0 and len(SimpleResponse.FromString(body).payload.body) == 7


def test_wire_response_of_a_stream_without_messages_has_a_status(connection):
    answer = connection.call(headers("StreamingOutputCall"), output())
    assert answer.http_status == "200" and answer.status == OK and answer.body == b""


def test_wire_response_to_a_failure_is_one_header_block(connection):
    answer = connection.call(headers(), simple(response_status={"code": 10, "message": "no"}))
    assert answer.is_trailers_only
    assert (answer.http_status, dict(answer.blocks[0])["content-type"]) == ("200", "application/grpc")
    assert answer.status == 10


def test_wire_response_may_fail_after_messages(connection):
    body = output(5) + output(response_status={"code": 9, "message": "enough"})
    answer = connection.call(headers("FullDuplexCall"), body)
    assert len(messages(answer.body)) == 1 and len(answer.blocks) == 2
    assert (answer.status, answer.first("grpc-message")) == (9, "enough")


@pytest.mark.parametrize("code", range(1, 17))
def test_wire_response_carries_every_code(connection, code):
    answer = connection.call(headers(), simple(response_status={"code": code, "message": "m"}))
    assert answer.status == code and details(answer).code == code
    request = output(response_status={"code": code, "message": "m"})
    assert connection.call(headers("StreamingOutputCall"), request).status == code


@pytest.mark.parametrize("text, on_the_wire", [
    ("plain ~ text!", "plain ~ text!"), ("100%", "100%25"), ("%41", "%2541"), ("\t\r\n\0\x7f", "%09%0D%0A%00%7F"),
    ("é", "%C3%A9"), ("☺ 😈", "%E2%98%BA %F0%9F%98%88"), ("", None)])
def test_wire_grpc_message_is_percent_encoded(connection, text, on_the_wire):
    if "\0" in text:
        text, on_the_wire = text.replace("\0", ""), on_the_wire.replace("%00", "")  # no string of ours holds a NUL
    answer = connection.call(headers(), simple(response_status={"code": 9, "message": text}))
    assert answer.first("grpc-message") == on_the_wire


# grpc-timeout


@pytest.mark.parametrize("timeout", ["99999999H", "1H", "1M", "00000001M", "60S", "90000m", "90000000u"])
def test_wire_timeout_in_every_unit(connection, timeout):
    assert connection.call(headers("EmptyCall", grpc_timeout=timeout), EMPTY).status == OK


@pytest.mark.parametrize("timeout", [
    "", "S", "1", "123456789S", "1s", "1h", "-1S", "+1S", "1.5S", "1 S", "S1", "1SS", "0x1S", "\u0661S"])
def test_wire_timeout_that_is_malformed_is_refused(connection, timeout):
    answer = connection.call(headers("EmptyCall", (INITIAL, "seen"), grpc_timeout=timeout), EMPTY)
    assert answer.status in (INVALID_ARGUMENT, INTERNAL)
    assert answer.is_trailers_only and answer.first(INITIAL) is None


@pytest.mark.parametrize("timeout", ["0n", "0H", "00000000S"])
def test_wire_timeout_that_has_passed_is_told_at_once(connection, timeout):
    answer = connection.call(headers("EmptyCall", grpc_timeout=timeout), EMPTY)
    assert answer.status == DEADLINE_EXCEEDED and answer.is_trailers_only


def test_wire_timeout_ends_a_call_that_waits(connection):
    stream = connection.begin(headers("FullDuplexCall", grpc_timeout="1m"))
    assert connection.answer(stream).status == DEADLINE_EXCEEDED


# Metadata


@pytest.mark.parametrize("value, expected", [
    ("AA==", [b"\0"]), ("AA", [b"\0"]), ("AAE=", [b"\0\1"]), ("q6ur", [b"\xab\xab\xab"]), ("", [b""]),
    ("AA==,AQ", [b"\0", b"\1"]), ("AA,AQ==, Ag", [b"\0", b"\1", b"\2"]), ("+/8", [b"\xfb\xff"])])
def test_wire_metadata_in_base64_is_taken_padded_or_not_and_sent_unpadded(connection, value, expected):
    answer = connection.call(headers("EmptyCall", (TRAILING, value)), EMPTY)
    assert answer.status == OK
    assert answer.all(TRAILING) == [unpadded(each) for each in expected]


def test_wire_metadata_keeps_duplicates_in_order(connection):
    sent = [(INITIAL, "b"), (TRAILING, "AQ=="), (INITIAL, "a"), (TRAILING, "AA"), (INITIAL, "a, c")]
    answer = connection.call(headers("EmptyCall", *sent), EMPTY)
    assert [value for name, value in answer.blocks[0] if name == INITIAL] == ["b", "a", "a, c"]
    assert answer.all(TRAILING) == ["AQ", "AA"]


def test_wire_metadata_goes_with_errors_too(connection):
    sent = [(INITIAL, "first"), (TRAILING, "AQ==")]
    answer = connection.call(headers("UnaryCall", *sent), simple(response_status={"code": 5, "message": "none"}))
    assert answer.status == NOT_FOUND
    assert dict(answer.blocks[0])[INITIAL] == "first" and answer.all(TRAILING) == ["AQ"]


def test_wire_metadata_with_an_upper_case_name_is_a_protocol_error(connection):
    assert connection.call(headers("EmptyCall", ("X-Upper", "a")), EMPTY).reset == PROTOCOL_ERROR
    assert connection.call(headers("EmptyCall"), EMPTY).status == OK


def filled(size: int) -> list:
    """A request whose fields count `size` bytes, 32 for each field included."""
    fields = headers("EmptyCall", ("x-fill", ""))
    used = sum(len(name) + len(value) + 32 for name, value in fields)
    return headers("EmptyCall", ("x-fill", "a" * (size - used)))


def test_wire_header_limit_is_met(connection):
    assert connection.call(filled(HEADER_BYTES_MAX), EMPTY).status == OK


@pytest.mark.parametrize("size", [HEADER_BYTES_MAX + 1, HEADER_BYTES_MAX * 2])
def test_wire_header_limit_is_kept(connection, size):
    answer = connection.call(filled(size), EMPTY)
    assert answer.http_status == "431" or answer.status == RESOURCE_EXHAUSTED
    assert connection.call(headers("EmptyCall"), EMPTY).status == OK


def test_wire_header_limit_is_announced(connection):
    frame = connection.until(lambda frame: isinstance(frame, SettingsFrame) and "ACK" not in frame.flags)
    assert frame.settings[SettingsFrame.MAX_HEADER_LIST_SIZE] == HEADER_BYTES_MAX


# Trace context


@pytest.mark.parametrize("trace", [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-00",
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])
def test_wire_traceparent_is_never_an_error(connection, trace):
    answer = connection.call(headers("EmptyCall", ("traceparent", trace), ("tracestate", "a=b,,=")), EMPTY)
    assert answer.status == OK


# Rich errors


FAILURES = {
    "validation": (headers(), simple(response_size=-1)),
    "echoed": (headers(), simple(response_status={"code": 7, "message": "no"})),
    "unavailable": (headers(), simple(response_status={"code": 14, "message": "later"})),
    "no such method": (headers("Nothing"), EMPTY),
    "malformed timeout": (headers(grpc_timeout="x"), EMPTY),
    "expired": (headers(grpc_timeout="0n"), EMPTY),
    "cut off": (headers(), b"\0"),
    "too large": (headers(), struct.pack(">BI", 0, MESSAGE_BYTES_MAX + 1)),
    "encoding": (headers(grpc_encoding="snappy"), EMPTY),
    "header limit": (filled(HEADER_BYTES_MAX + 1), EMPTY),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_wire_status_details_say_what_the_status_says(connection, failure):
    fields, body = FAILURES[failure]
    answer = connection.call(fields, body)
    [_] = answer.all(DETAILS)
    status = details(answer)
    assert status.code == answer.status != OK
    kinds = [detail.TypeName() for detail in status.details]
    assert len(kinds) == len(set(kinds)), "a detail comes twice"
    info = error_details_pb2.ErrorInfo()
    [found] = [detail for detail in status.details if detail.Is(info.DESCRIPTOR)]
    found.Unpack(info)
    assert re.fullmatch(r"[A-Z][A-Z0-9_]{0,62}", info.reason) and info.domain


def test_wire_status_details_name_the_field_that_is_refused(connection):
    status = details(connection.call(headers(), simple(response_size=-1)))
    request = error_details_pb2.BadRequest()
    [found] = [detail for detail in status.details if detail.Is(request.DESCRIPTOR)]
    found.Unpack(request)
    assert [violation.field for violation in request.field_violations] == ["response_size"]


def test_wire_status_details_say_when_to_try_again(connection):
    status = details(connection.call(headers(), simple(response_status={"code": UNAVAILABLE, "message": "later"})))
    retry = error_details_pb2.RetryInfo()
    [found] = [detail for detail in status.details if detail.Is(retry.DESCRIPTOR)]
    found.Unpack(retry)
    assert retry.retry_delay.ToNanoseconds() > 0


def test_wire_status_details_never_come_with_ok(connection):
    assert connection.call(headers("EmptyCall"), EMPTY).all(DETAILS) == []


# Compression


GZIP = ("grpc-encoding", "gzip")
ACCEPTS = ("grpc-accept-encoding", "identity,deflate, gzip")


def squeezed(framed: bytes) -> bytes:
    """The same messages, each compressed."""
    return b"".join(message(gzip.compress(body), 1) for _, body in messages(framed))


def input_request(size: int, **fields) -> bytes:
    return message(StreamingInputCallRequest(payload={"body": bytes(size)}, **fields).SerializeToString())


@pytest.mark.parametrize("encoding", ["snappy", "br", "deflate", "GZIP"])
def test_wire_compression_that_is_unknown_is_unimplemented(connection, encoding):
    answer = connection.call(headers("EmptyCall", grpc_encoding=encoding), EMPTY)
    assert answer.status == UNIMPLEMENTED and answer.is_trailers_only
    assert set(answer.first("grpc-accept-encoding").split(",")) >= {"identity", "gzip"}


@pytest.mark.parametrize("fields", [headers("EmptyCall"), headers("EmptyCall", grpc_encoding="identity")])
def test_wire_compression_flag_without_encoding_is_internal(connection, fields):
    assert connection.call(fields, squeezed(EMPTY)).status == INTERNAL


def test_wire_compression_of_requests_is_told_message_by_message(connection):
    plain, small = input_request(70), input_request(500, expect_compressed={"value": False})
    wanted = squeezed(input_request(3000, expect_compressed={"value": True}))
    answer = connection.call(headers("StreamingInputCall", GZIP), plain + wanted + small)
    assert answer.status == OK
    [(_, body)] = messages(answer.body)
    assert StreamingInputCallResponse.FromString(body).aggregated_payload_size == 3570


@pytest.mark.parametrize("expected, body", [
    (True, input_request(3000, expect_compressed={"value": True})),
    (False, squeezed(input_request(3000, expect_compressed={"value": False})))])
def test_wire_compression_of_requests_that_is_not_as_expected_is_seen(connection, expected, body):
    assert connection.call(headers("StreamingInputCall", GZIP), body).status == INVALID_ARGUMENT


def test_wire_compression_may_be_cut_at_any_edge(connection):
    whole = squeezed(simple(response_size=1, payload={"body": b"a" * 40}, expect_compressed={"value": True}))
    for edge in range(len(whole) + 1):
        assert connection.call(headers("UnaryCall", GZIP), whole[:edge], whole[edge:]).status == OK, edge


@pytest.mark.parametrize("body", [
    b"", b"no gzip at all", gzip.compress(b"a" * 99)[:-9], gzip.compress(b"a" * 99)[:-1], gzip.compress(b"") + b"more"])
def test_wire_compression_that_is_broken_is_internal(connection, body):
    assert connection.call(headers("EmptyCall", GZIP), message(body, 1)).status == INTERNAL


def test_wire_compression_does_not_get_around_the_limit(connection):
    bomb = gzip.compress(bytes(64 << 20))
    stream = connection.begin(headers("EmptyCall", GZIP))
    send_windowed(connection, stream, message(bomb, 1))
    assert connection.answer(stream).status == RESOURCE_EXHAUSTED


@pytest.mark.parametrize("wanted", [True, False])
def test_wire_compression_of_an_answer_is_the_clients_to_allow(connection, wanted):
    body = simple(response_size=5000, response_compressed={"value": wanted})
    for accepted in ([ACCEPTS], []):
        answer = connection.call(headers("UnaryCall", *accepted), body)
        [(flag, found)] = messages(answer.body)
        is_compressed = wanted and bool(accepted)
        assert answer.status == OK and flag == is_compressed
        assert dict(answer.blocks[0]).get("grpc-encoding") == ("gzip" if is_compressed else None)
        found = gzip.decompress(found) if flag else found
        assert SimpleResponse.FromString(found).payload.body == bytes(5000)


def test_wire_compression_of_answers_goes_message_by_message(connection):
    request = StreamingOutputCallRequest(response_parameters=[
        {"size": 31415, "compressed": {"value": True}}, {"size": 92653, "compressed": {"value": False}},
        {"size": 1000, "compressed": {"value": True}}])
    answer = connection.call(headers("StreamingOutputCall", ACCEPTS), message(request.SerializeToString()))
    found = messages(answer.body)
    assert answer.status == OK and [flag for flag, _ in found] == [1, 0, 1]
    assert dict(answer.blocks[0])["grpc-encoding"] == "gzip"
    bodies = [StreamingOutputCallResponse.FromString(gzip.decompress(body) if flag else body).payload.body
              for flag, body in found]
    assert [len(body) for body in bodies] == [31415, 92653, 1000]


def test_wire_compression_is_offered(connection):
    answer = connection.call(headers("EmptyCall", ACCEPTS), EMPTY)
    assert dict(answer.blocks[0])["grpc-accept-encoding"] == "identity,gzip"


# Health


def health(connection, name: str) -> handmade.Answer:
    request = message(HealthCheckRequest(service=name).SerializeToString())
    return connection.call(headers(path="/grpc.health.v1.Health/Check"), request)


@pytest.mark.parametrize("name", ["", "grpc.testing.TestService"])
def test_wire_health_of_what_is_served(connection, name):
    answer = health(connection, name)
    [(_, body)] = messages(answer.body)
    assert answer.status == OK
    assert HealthCheckResponse.FromString(body).status == HealthCheckResponse.SERVING


def test_wire_health_of_an_unknown_name_is_not_found(connection):
    assert health(connection, "no.such.Service").status == NOT_FOUND


def test_wire_health_watch_of_an_unknown_name_answers_at_once_and_stays_open(connection):
    request = message(HealthCheckRequest(service="no.such.Service").SerializeToString())
    stream = connection.begin(headers(path="/grpc.health.v1.Health/Watch"))
    connection.data(stream, request)
    connection.until(lambda frame: isinstance(frame, DataFrame))
    answer = connection.answers[stream]
    [(_, body)] = messages(answer.body)
    assert HealthCheckResponse.FromString(body).status == HealthCheckResponse.SERVICE_UNKNOWN
    assert connection.call(headers("EmptyCall"), EMPTY).status == OK
    assert not answer.is_ended and answer.reset is None


# Cancellation, refusal, shutdown, keepalive


def test_wire_reset_by_the_client_ends_one_call_alone(connection):
    stream, other = connection.begin(headers("FullDuplexCall")), connection.begin(headers("FullDuplexCall"))
    connection.send(RstStreamFrame(stream, error_code=CANCEL))
    connection.data(other, output(3))
    assert connection.answer(other).status == OK
    assert connection.answers[stream].blocks == []


def test_wire_refusal_of_a_stream_too_many_says_that_it_was_not_processed(plain_server):
    client = handmade.Client(plain_server.port)
    # The limit is not known yet.
    open_ones = [client.begin(headers("FullDuplexCall")) for _ in range(STREAMS_MAX)]
    extra = client.begin(headers("EmptyCall"))
    client.data(extra, EMPTY)
    assert client.answer(extra).reset == REFUSED_STREAM
    for stream in open_ones:
        client.data(stream, b"")
    assert [client.answer(stream).status for stream in open_ones] == [OK] * STREAMS_MAX
    client.close()


def test_wire_stream_limit_that_is_acknowledged_costs_no_other_stream(connection):
    connection.until(lambda frame: isinstance(frame, SettingsFrame) and "ACK" not in frame.flags)
    open_ones = [connection.begin(headers("FullDuplexCall")) for _ in range(STREAMS_MAX)]
    extra = connection.begin(headers("EmptyCall"))
    assert connection.answer(extra).reset == REFUSED_STREAM
    for stream in open_ones:
        connection.data(stream, b"")
    assert [connection.answer(stream).status for stream in open_ones] == [OK] * STREAMS_MAX


def test_wire_shutdown_says_goodbye_twice_and_answers_what_it_took():
    with interop_server() as server:
        client = handmade.Client(server.port)
        first = client.begin(headers("FullDuplexCall"))
        client.data(first, output(1), end=False)
        client.until(lambda frame: isinstance(frame, DataFrame))
        client.answers_pings = False
        server.ask_to_stop()
        goaway = client.until(lambda frame: isinstance(frame, GoAwayFrame))
        assert (goaway.last_stream_id, goaway.error_code) == ((1 << 31) - 1, NO_ERROR)
        ping = client.receive()  # not answered yet: a call sent by then still counts
        assert isinstance(ping, PingFrame) and "ACK" not in ping.flags
        late = client.begin(headers("EmptyCall"))
        client.data(late, EMPTY)
        client.send(PingFrame(0, ping.opaque_data, flags=["ACK"]))
        assert client.answer(late).status == OK
        last = client.goaways[-1] if len(client.goaways) > 1 else client.until(
            lambda frame: isinstance(frame, GoAwayFrame))
        assert (last.last_stream_id, last.error_code) == (late, NO_ERROR)
        client.data(first, output(2))
        answer = client.answer(first)
        assert answer.status == OK and len(messages(answer.body)) == 2
        assert client.until(lambda frame: False) is None, "the server closes"
        client.close()
        assert server.wait() == 0


def test_wire_keepalive_pings_are_answered_and_too_many_end_the_connection(plain_server):
    client = handmade.Client(plain_server.port)
    client.send(PingFrame(0, b"12345678"))
    answer = client.until(lambda frame: isinstance(frame, PingFrame))
    assert "ACK" in answer.flags and answer.opaque_data == b"12345678"
    client.send(*[PingFrame(0, b"87654321") for _ in range(200)])
    goaway = client.until(lambda frame: isinstance(frame, GoAwayFrame))
    assert goaway.error_code == ENHANCE_YOUR_CALM
    assert goaway.additional_data == b"too_many_pings"
    client.close()
