# SPDX-License-Identifier: MIT
"""The agent's listener: passwords and TLS with the real curl, requests that are wrong, and clients that
are slow or many."""
import os
import socket
import subprocess

import pytest
from agent_kit import LIMIT_S, Agent, bcrypt, clean_environment, program, wait_for

HOST = b"Host: a\r\n"


def put_config(path, text):
    """Replace the file, as an editor does."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.rename(path)


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(name="slow", scope="module", autouse=True)
def slow_fixture(tmp_path_factory):
    """Clients that begin a request and never end it: one silent, one that goes on letter by letter. They
    begin first, and the other tests pass their time."""
    agent = Agent("--max-jobs", "0", environment=clean_environment(tmp_path_factory.mktemp("slow")))
    silent = socket.create_connection(("127.0.0.1", agent.port))
    dribbling = socket.create_connection(("127.0.0.1", agent.port))
    dribbling.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    yield agent, silent, dribbling
    silent.close()
    dribbling.close()
    assert agent.end() == (0, "")


@pytest.fixture(name="agent", scope="module")
def agent_fixture(tmp_path_factory):
    agent = Agent("--max-jobs", "0", environment=clean_environment(tmp_path_factory.mktemp("a")))
    agent.text()
    yield agent
    status, said = agent.end()
    assert (status, said) == (0, "")


# ---- requests

@pytest.mark.parametrize("request_bytes, status", [
    (b"GET /nothing HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    (b"GET /metrics/../x HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    (b"POST /metrics HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n\r\nabcd", 405),
    (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
    (b"GET /metrics HTTP/3.0\r\n" + HOST + b"\r\n", 505),
    (b"GET /metrics HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n\r\nabcd", 413),
    (b"GET /" + b"x" * 300 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    (b"GET /metrics HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 100000 + b"\r\n\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"\0" * 5000, 400),
])
def test_wrong_requests(agent, request_bytes, status):
    """Each has its answer, which the client sees to its end, and the connection is closed."""
    answer = agent.send(request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].split()[1] == str(status).encode()
    fields = dict(line.split(b": ", 1) for line in lines[1:])
    assert len(body) == int(fields[b"Content-Length"])
    assert status == 404 or fields[b"Connection"] == b"close"
    assert (b"Allow" in fields) == (status == 405)


def test_head(agent):
    status, head = agent.curl("/metrics", "--head")
    assert status == 200
    assert "Content-Length: " in head and "Content-Length: 0\r" not in head
    assert "tidemark_" not in head


def test_requests_in_a_row(agent):
    """Two requests sent at once on one connection are answered one after the other; then it ends."""
    answer = agent.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nHEAD /healthz HTTP/1.1\r\n" + HOST +
                        b"Connection: close\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.count(b"ok\n") == 1
    assert answer.endswith(b"Connection: close\r\n\r\n")


def test_letter_by_letter(agent):
    with socket.create_connection(("127.0.0.1", agent.port), timeout=LIMIT_S) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for letter in b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":
            s.sendall(bytes([letter]))
        answer = b""
        while part := s.recv(4096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"\r\n\r\nok\n")


def test_pages(agent):
    assert agent.curl("/healthz") == (200, "ok\n")
    status, body = agent.curl("/")
    assert status == 200 and '<a href="/metrics">' in body


def test_a_crowd(agent):
    """200 clients that say nothing: one that asks at once is answered all the same."""
    crowd = [socket.create_connection(("127.0.0.1", agent.port)) for _ in range(200)]
    metrics = agent.metrics()
    assert metrics.value("tidemark_agent_http_refused_total", reason="busy") >= 200 - 64
    with open(f"/proc/{agent.process.pid}/status", encoding="ascii") as status:
        threads = next(line for line in status if line.startswith("Threads:"))
    assert int(threads.split()[1]) <= 3
    assert len(os.listdir(f"/proc/{agent.process.pid}/fd")) < 64 + 40
    for client in crowd:
        client.close()


def test_refusals_are_counted(agent):
    metrics = agent.metrics()
    assert metrics.value("tidemark_agent_http_refused_total", reason="malformed") >= 4
    assert metrics.value("tidemark_agent_http_refused_total", reason="large") >= 3
    assert metrics.value("tidemark_agent_http_requests_total", code="405") >= 1


# ---- passwords

def test_passwords(tmp_path):
    config = tmp_path / "web.yml"
    put_config(config, f"basic_auth_users:\n  prom: {bcrypt('s3cret')}\n  ana: {bcrypt('pä:ss')}\n")
    agent = Agent("--max-jobs", "0", "--web-config", str(config), environment=clean_environment(tmp_path))
    assert agent.text("text/plain", "-u", "prom:s3cret").startswith("# HELP")
    for user in "prom:s3cret", "ana:pä:ss":
        assert agent.curl("/metrics", "-u", user)[0] == 200
    for user in "prom:", "prom:S3cret", "ana:s3cret", "nobody:s3cret", "prom", ":":
        assert agent.curl("/metrics", "-u", user) == (401, "Unauthorized\n")
    status, head = agent.curl("/metrics", "-i")
    assert status == 401 and 'WWW-Authenticate: Basic realm="tidemark"' in head
    assert agent.curl("/")[0] == 401
    assert agent.curl("/metrics", "-H", "Authorization: Bearer x")[0] == 401
    assert agent.curl("/healthz") == (200, "ok\n")

    put_config(config, f"basic_auth_users:\n  prom: {bcrypt('new')}\n")  # read again by itself
    assert agent.curl("/metrics", "-u", "prom:s3cret")[0] == 401
    assert agent.curl("/metrics", "-u", "prom:new")[0] == 200
    put_config(config, "basic_auth_users:\n  prom: new\n")  # what is wrong changes nothing
    assert agent.curl("/metrics", "-u", "prom:new")[0] == 200
    assert agent.curl("/metrics")[0] == 401
    status, said = agent.end()
    assert status == 0
    assert said == (f"tidemark: {config}: line 2: not a bcrypt hash ($2y$10$..., from "
                    "htpasswd -nBC 10 \"\"): of user prom\n")


# ---- TLS

@pytest.fixture(name="keys", scope="module")
def keys_fixture(tmp_path_factory):
    """An authority, a server's certificate and a client's, and one that nobody signed."""
    folder = tmp_path_factory.mktemp("keys")
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
    for name, extra in ("server", ["-addext", "subjectAltName=IP:127.0.0.1"]), ("client", []):
        openssl(folder, "req", "-x509", *ec, "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout",
                f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", "-addext",
                "basicConstraints=critical,CA:FALSE", *extra)
    openssl(folder, "req", "-x509", *ec, "-keyout", "other.key", "-out", "other.crt", "-subj", "/CN=o")
    return folder


def test_tls(tmp_path, keys):
    config = tmp_path / "web.yml"
    put_config(config, f"tls_server_config:\n  cert_file: {keys}/server.crt\n  key_file: {keys}/server.key\n"
               f"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: {keys}/ca.crt\n")
    agent = Agent("--max-jobs", "0", "--web-config", str(config), environment=clean_environment(tmp_path))
    assert agent.url.startswith("https://")
    ours = ["--cacert", str(keys / "ca.crt"), "--cert", str(keys / "client.crt"), "--key",
            str(keys / "client.key")]
    assert "tidemark_build_info" in agent.text("text/plain", *ours)
    two = agent.curl("/metrics", *ours, "--next", "-sS", *ours, agent.url + "/healthz")  # a kept connection
    assert two[1].startswith("ok\n") and "tidemark_build_info" in two[1]
    assert agent.curl("/healthz", *ours, "--tlsv1.3")[0] == 200
    refused = [["--cacert", str(keys / "ca.crt")],  # no certificate
               [*ours[:2], "--cert", str(keys / "other.crt"), "--key", str(keys / "other.key")],
               [*ours, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"]]
    for arguments in refused:
        assert agent.curl("/healthz", *arguments)[0] == 0
    plain = subprocess.run(["curl", "-sS", f"http://127.0.0.1:{agent.port}/metrics"], capture_output=True,
                           check=False)
    assert plain.returncode != 0 and plain.stdout == b""
    assert agent.end() == (0, "")


def test_tls_without_a_certificate(tmp_path, keys):
    config = tmp_path / "web.yml"
    put_config(config, f"tls_server_config:\n  cert_file: none.crt\n  key_file: {keys}/server.key\n")
    done = subprocess.run([program("tidemark"), "agent", "--listen", "0", "--web-config", str(config)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"tidemark: {config}: cert_file {tmp_path}/none.crt: no such file or folder\n"


# ---- at the end: what began first is over

def test_slow_clients_are_closed(slow):
    """Ten seconds for a request, however its bytes come."""
    agent, silent, dribbling = slow

    def is_closed(client, data):
        client.settimeout(0.02)
        try:
            client.sendall(data)
            return client.recv(1) == b""
        except TimeoutError:
            return False
        except (BrokenPipeError, ConnectionResetError):
            return True

    wait_for("the end of slow clients", lambda: is_closed(dribbling, b"x") and is_closed(silent, b""))
    assert agent.metrics().value("tidemark_agent_http_refused_total", reason="slow") == 2
