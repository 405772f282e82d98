"""A stock gRPC client that knows only the .proto files.

    author = Client(layout)
    session = author.identity.Register(email="anna@example.org", ...).session
    author = author.with_token(session.access_token)
    author.vault.SaveDraft(title="For you", ...)

A call's fields are keyword arguments; a message is a dict, an enum value its name. A `request_id` is made up unless one
is given, and stays the same when a call is repeated because the service was unavailable.
"""

import contextlib
import importlib
import sys
import time
import uuid

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.rpc import error_details_pb2, status_pb2

from .layout import DATABASE_SERVICES, STUBS, TLS, Layout

#: min_reconnect_backoff_ms is how long one attempt to connect may take, whatever its name says.
OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 20_000),
    ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20),
]


def load_stubs() -> None:
    """Imports every module made from proto/, which fills protobuf's default pool."""
    if str(STUBS) not in sys.path:
        # At the end: the folder must not hide an installed package.
        sys.path.append(str(STUBS))
    for path in sorted(STUBS.rglob("*_pb2.py")):
        importlib.import_module(".".join(path.relative_to(STUBS).with_suffix("").parts))


def methods(service: str) -> dict:
    """The calls that a service's process answers, by name."""
    pool = descriptor_pool.Default()
    found = {}
    for path in sorted(STUBS.rglob("*_pb2.py")):
        file = pool.FindFileByName(str(path.relative_to(STUBS)).replace("_pb2.py", ".proto"))
        if file.package in (f"afterthoughts.{service}.v1", "afterthoughts.events.v1"):
            for declared in file.services_by_name.values():
                found.update({method.name: method for method in declared.methods})
    return found


class Failure:
    """What a refused call said."""

    def __init__(self):
        self.error: grpc.RpcError | None = None

    @property
    def code(self) -> grpc.StatusCode:
        return self.error.code()

    @property
    def message(self) -> str:
        return self.error.details()

    def _detail(self, kind):
        for key, value in self.error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                for item in status_pb2.Status.FromString(value).details:
                    if item.Is(kind.DESCRIPTOR):
                        detail = kind()
                        item.Unpack(detail)
                        return detail
        return None

    @property
    def reason(self) -> str:
        info = self._detail(error_details_pb2.ErrorInfo)
        return info.reason if info else ""

    @property
    def fields(self) -> list:
        """The fields that google.rpc.BadRequest names."""
        request = self._detail(error_details_pb2.BadRequest)
        return [violation.field for violation in request.field_violations] if request else []

    @property
    def retry_after(self) -> float | None:
        """Seconds, from google.rpc.RetryInfo."""
        info = self._detail(error_details_pb2.RetryInfo)
        return info.retry_delay.ToTimedelta().total_seconds() if info else None


@contextlib.contextmanager
def expect_error(code, reason: str | None = None, field: str | None = None):
    """The block's call must be refused with this code ("NOT_FOUND"), reason and named field; yields the Failure."""
    failure = Failure()
    wanted = grpc.StatusCode[code] if isinstance(code, str) else code
    try:
        yield failure
    except grpc.RpcError as error:
        failure.error = error
    if failure.error is None:
        raise AssertionError(f"the call succeeded where {wanted.name} was expected")
    told = f"{failure.code.name} {failure.reason} {failure.fields}: {failure.message}"
    if failure.code != wanted or (reason is not None and failure.reason != reason) or (
            field is not None and field not in failure.fields):
        raise AssertionError(f"expected {wanted.name} {reason or ''} {field or ''}, got {told}") from failure.error


class Calls:
    """One service's calls."""

    def __init__(self, client: "Client", service: str):
        self._client = client
        self._service = service
        self._methods = methods(service)

    def __getattr__(self, name: str):
        method = self._methods.get(name)
        if method is None:
            raise AttributeError(f"{self._service} has no call {name}; it has {', '.join(sorted(self._methods))}")
        return lambda **fields: self._client.call(self._service, method, fields)


class Client:
    """Holds one channel to each service. `certificate` names a service to appear as; without one the caller is a
    person. `patience` is for how many seconds an UNAVAILABLE call is repeated."""

    def __init__(self, layout: Layout, certificate: str | None = None, patience: float = 0, timeout: float = 20):
        load_stubs()
        self.layout = layout
        self.patience = patience
        self.timeout = timeout
        self.token: str | None = None
        identity = ()
        if certificate is not None:
            identity = ((TLS / f"{certificate}.key").read_bytes(), (TLS / f"{certificate}.pem").read_bytes())
        credentials = grpc.ssl_channel_credentials((TLS / "ca.pem").read_bytes(), *identity)
        self.channels = {name: grpc.secure_channel(layout.address(name), credentials, options=OPTIONS)
                         for name in DATABASE_SERVICES}

    def __getattr__(self, name: str) -> Calls:
        if name not in DATABASE_SERVICES:
            raise AttributeError(name)
        calls = Calls(self, name)
        setattr(self, name, calls)
        return calls

    def with_token(self, token: str | None) -> "Client":
        """The same channels, with another access token (none: anonymous)."""
        other = object.__new__(Client)
        other.__dict__.update({key: value for key, value in self.__dict__.items() if key not in DATABASE_SERVICES})
        other.token = token
        return other

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()

    def metadata(self) -> list:
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    def request(self, method, fields: dict):
        kind = message_factory.GetMessageClass(method.input_type)
        if "request_id" in method.input_type.fields_by_name and "request_id" not in fields:
            fields = {**fields, "request_id": str(uuid.uuid4())}
        return kind(**fields)

    def call(self, service: str, method, fields: dict):
        """The response; a server-streaming call returns the iterable call object."""
        answer = message_factory.GetMessageClass(method.output_type)
        path = f"/{method.containing_service.full_name}/{method.name}"
        request = self.request(method, fields)
        channel = self.channels[service]
        if method.server_streaming:
            stream = channel.unary_stream(path, lambda m: m.SerializeToString(), answer.FromString)
            return stream(request, metadata=self.metadata())
        unary = channel.unary_unary(path, lambda m: m.SerializeToString(), answer.FromString)
        until = time.monotonic() + self.patience
        while True:
            try:
                return unary(request, timeout=self.timeout, metadata=self.metadata())
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def raw(self, service: str, path: str, body: bytes, metadata: list | None = None) -> bytes:
        """Sends any bytes to any method, for requests that no stub would make."""
        unary = self.channels[service].unary_unary(path)
        return unary(body, timeout=self.timeout, metadata=self.metadata() if metadata is None else metadata)
