"""`buf curl`, a third client, calls our server over TLS."""

import json
import subprocess

import pytest
from grpc_tools import protoc

from interop_protos import FOLDER, NAMES
from processes import AUTHORITY, PATIENCE_SECONDS
from rig.layout import VENV


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    path = tmp_path_factory.mktemp("buf") / "testing.binpb"
    assert protoc.main(["protoc", f"-I{FOLDER}", "--include_imports", f"--descriptor_set_out={path}", *NAMES]) == 0
    return path


def curl(server, path: str, *arguments) -> subprocess.CompletedProcess:
    command = [VENV / "bin" / "buf", "curl", "--protocol", "grpc", "--cacert", AUTHORITY, *arguments,
               f"https://127.0.0.1:{server.port}{path}"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def test_interop_buf_curl_calls_over_tls(tls_server, schema):
    done = curl(tls_server, "/grpc.testing.TestService/UnaryCall", "--schema", schema, "-d", '{"responseSize": 3}')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"payload": {"body": "AAAA"}}


def test_interop_buf_curl_shows_a_status_with_its_details(tls_server, schema):
    done = curl(tls_server, "/grpc.testing.TestService/UnaryCall", "--schema", schema, "-d", '{"responseSize": -1}')
    error = json.loads(done.stderr)
    assert done.returncode != 0 and error["code"] == "invalid_argument"
    assert "response_size" in json.dumps(error)


def test_interop_buf_curl_lists_methods_by_reflection(tls_server):
    done = curl(tls_server, "", "--list-methods")
    assert done.returncode == 0, done.stderr
    assert "grpc.testing.TestService/UnaryCall" in done.stdout.split()


def test_interop_buf_curl_calls_by_reflection(tls_server):
    done = curl(tls_server, "/grpc.testing.TestService/UnaryCall", "-d", '{"responseSize": 3}')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"payload": {"body": "AAAA"}}
