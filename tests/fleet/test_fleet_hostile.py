# SPDX-License-Identifier: MIT
"""`tidemark fleet` and a server that is slow, lies, floods or is something else: each a clear error or
an answer without what cannot be, in bounded memory and time; and how it logs in."""
import base64
import http.server
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest
from agent_kit import program
from cluster_kit import fleet, free_port, python

NOW = 1795000000.5
USAGE, NO_ANSWER = 2, 4
MEMORY_MOST_KIB = 300 << 10  # of answers of at most 64 MiB


def vector(*series):
    """An answer with these (labels, value)."""
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": labels, "value": [NOW, value]} for labels, value in series]}})


class Server(http.server.ThreadingHTTPServer):
    """Answers time(), and each question as `answer(question)` says: a body, (status, headers, body), or a
    function that writes to the handler's socket."""
    daemon_threads = True

    def __init__(self, answer, tls=None):
        self.answer, self.asked, self.heads = answer, [], []
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        question = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("query", [""])[0]
        self.server.asked.append((self.path, question))
        self.server.heads.append(dict(self.headers))
        answer = self.server.answer(question)
        if callable(answer):
            answer(self)
            return
        status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
        body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def short(value):
    """A case's name, where pytest would show thousands of bytes."""
    return str(value)[:40]


def but(**answers):
    """Answers in place of good ones, by a word of the question; the word `any` is in each."""
    def answer(question):
        for word, given in answers.items():
            if word == "any" or word in question:
                return given
        return vector(({}, str(NOW))) if question == "time()" else vector()
    return answer


def refused(answer, *arguments, **environment):
    """What it says, with no answer to show for it."""
    with Server(answer) as server:
        status, page, said = fleet(server.url, *arguments, **environment)
        assert (status, page) == (NO_ANSWER, ""), said
        assert said.startswith(f"tidemark: {server.url}: ") and said.count("\n") == 1
        return said[len(f"tidemark: {server.url}: "):-1]


# ---- not there, not it

def test_not_there():
    url = f"http://127.0.0.1:{free_port()}"
    assert fleet(url) == (NO_ANSWER, "", f"tidemark: {url}: cannot connect: Connection refused\n")
    status, page, said = fleet("http://there-is-no-such-host.invalid:9090")
    assert (status, page) == (NO_ANSWER, "")
    assert "the name 'there-is-no-such-host.invalid' is not known: " in said


@pytest.mark.parametrize("url, reason", [
    ("prometheus:9090", "it is not http://HOST:PORT or https://HOST:PORT"),
    ("ftp://a", "it is not http://HOST:PORT or https://HOST:PORT"),
    ("http://", "it is not http://HOST:PORT or https://HOST:PORT"),
    ("http://a b", "it is no URL, such as http://HOST:PORT"),
    ("http://a:99999", "it is no URL, such as http://HOST:PORT"),
    ("http://a/" + "b" * 2000, "it is too long"),
], ids=short)
def test_no_url(url, reason):
    status, page, said = fleet(url)
    assert (status, page) == (USAGE, "") and (said.endswith(f": {reason}\n") or len(url) > 200), said


def test_a_password_in_the_url_is_refused_and_not_repeated():
    status, _, said = fleet("http://me:secret@127.0.0.1:9090")
    assert status == USAGE and "secret" not in said
    assert "a URL with a password is not taken: others can see it" in said


@pytest.mark.parametrize("answer, reason", [
    ((404, {}, "404 page not found\n"), "it has no /api/v1/query (404): is it Prometheus, and is a path missing, such as "
     "http://HOST:PORT/prometheus?"),
    ((302, {"Location": "https://sso.example/login?x=\033[31m"}, ""), "it sends us to "
     "'https://sso.example/login?x=\ufffd[31m', and that is not followed: give the address of the API itself"),
    ((401, {"WWW-Authenticate": "Basic"}, "no"),
     "it wants another login (401): see --user, --password-file, --token-file"),
    ((403, {}, "no"), "it wants another login (403): see --user, --password-file, --token-file"),
    ((500, {}, "oops"), "it answers with HTTP status 500"),
    ((422, {}, '{"status":"error","errorType":"execution","error":"too many samples"}'),
     "it refuses the question: too many samples (422)"),
    ((503, {}, '{"status":"error","error":"\\u001b[2Jquery timed out\\nnow"}'),
     "it refuses the question: \ufffd[2Jquery timed out\ufffdnow (503)"),
    ("<html>a login page</html>", "what it answers is not Prometheus' JSON: is the address that of the API?"),
    ("", "what it answers is not Prometheus' JSON: is the address that of the API?"),
    ('{"status":"error","error":"bad query"}', "it refuses the question: bad query"),
    ('{"status":"success"}', "its answer has no result"),
    ('{"data":{"result":[]}}', "it refuses the question: it does not say why"),
    ('{"status":"success","data":{"result":[]', "its answer cannot be read: byte 39: a comma or a closing bracket is missing"),
    ('{"status":"success","data":{"result":{}}}', "its answer cannot be read: byte 37: an array should begin here"),
    ('{"status":"success","data":{"result":[7]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{}}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{"a":1},"value":[1,"2"]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":[],"value":[1,"2"]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"value":[1,2]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"value":[1,"two"]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"value":["1","2"]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"value":[1]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"value":[1,"2","3"]}]}}', None),
    ('{"status":"success","data":{"result":[{"metric":{},"values":[[2,"1"],[1,"1"]]}]}}', None),
    ('{"status":"success","data":' + "[" * 5000, None),
    ('{"status":"success","data":{"result":[]}} {}', None),
    ('{"status":"success","data":{"result":[{"metric":{%s},"value":[1,"2"]}]}}' %
     ",".join(f'"l{i}":""' for i in range(65)), None),
], ids=short)
def test_answers_that_are_none(answer, reason):
    said = refused(but(any=answer))
    if reason is None:
        assert said.startswith("its answer cannot be read: byte ") and len(said) > 40, said
    else:
        assert said == reason


@pytest.mark.parametrize("clock", ["NaN", "+Inf", "-5", "1e300"])
def test_a_clock_that_is_none(clock):
    assert refused(but(any=vector(({}, clock)))) == "its clock gives no time"
    assert refused(but(any=vector())) == "its clock gives no time"


def test_a_range_for_a_moment():
    body = '{"status":"success","data":{"result":[{"metric":{},"values":[[1,"1"],[2,"1"]]}]}}'
    assert refused(but(tidemark_gpu_info=body)) == "it answers with a range where a moment was asked for"


# ---- slow, cut off, too much

def drip(handler):
    """A byte every now and then."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def say_nothing(handler):
    handler.connection.recv(1)


def write_headers_for_ever(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-A: %s\r\n" % (b"b" * 1000))


@pytest.mark.parametrize("write", [drip, say_nothing])
def test_slow(write):
    began = time.monotonic()
    assert refused(but(any=write), "--timeout", "0.3") == "no whole answer in 1 s; --timeout S waits longer"
    assert time.monotonic() - began < 30  # it would be for ever


@pytest.mark.parametrize("bytes_sent, reason", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}", "the connection ended before the answer did"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\"", "the connection ended before the answer did"),
    (b"", "the connection ended before the answer did"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "what answers does not speak HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n", "the answer is larger than 64 MiB; --job NAME asks "
     "for less"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", None),
])
def test_cut_off(bytes_sent, reason):
    def write(handler):
        handler.wfile.write(bytes_sent)
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)
    said = refused(but(any=write), "--timeout", "5")
    assert said == reason if reason else said


# A process's ru_maxrss begins with what its parent has, so the parent is a small one.
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measured(server, *arguments):
    """(exit status, stderr, KiB of memory at most) of a run that writes to nowhere."""
    done = subprocess.run([sys.executable, "-c", MEASURE, program("tidemark"), "fleet", "--prometheus", server.url,
                           *arguments], capture_output=True, text=True, check=True)
    status, used_kib = map(int, done.stdout.split())
    return status, done.stderr, used_kib


def flood(series, n):
    """n series, in one answer without a length."""
    def write(handler):
        handler.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n{"status":"success","data":{"resultType":"vector","result":[')
        many = ",".join([series] * 10000).encode()
        for i in range(n // 10000):
            handler.wfile.write((b"," if i else b"") + many)
        handler.wfile.write(b"]}}")
    return write


def test_a_million_series():
    """Too many of them, and too many bytes; and headers without an end."""
    short = '{"metric":{"host":"a"},"value":[1,"1"]}'
    long = '{"metric":{"host":"%s"},"value":[1,"1"]}' % ("x" * 200)
    for answer, reason in (
            (flood(short, 1000000), "there are more than 250000 series; --job NAME asks for less\n"),
            (flood(long, 1000000), "the answer is larger than 64 MiB; --job NAME asks for less\n"),
            (write_headers_for_ever, "\n")):
        with Server(but(tidemark_gpu_info=answer)) as server:
            status, said, used_kib = measured(server)
        assert status == NO_ANSWER and said.endswith(reason), said
        assert used_kib < MEMORY_MOST_KIB


def test_many_ranks_are_an_answer():
    """As many as a large cluster has: listed as a few lines, in bounded memory."""
    n = 20000
    ranks = vector(*[({"__name__": "tidemark_job_peak_allocated_bytes", "job": "big", "rank": str(i), "host": f"n{i // 8}",
                       "gpu": str(i % 8), "pid": str(1000 + i)}, str(1000 + i)) for i in range(n)])
    with Server(but(peak_growth=ranks)) as server:
        status, page, _ = fleet(server.url, "--sort", "peak")
        assert status == 0
        assert f"  and {n - 8:,} more, with peaks from 1000 B to 20.5 KiB; --rows N shows more\n" in page
        assert measured(server)[2] < MEMORY_MOST_KIB


# ---- values and labels that cannot be

HOSTILE = "\033]0;owned\007\u202eevil\n'; rm -rf /; '" + "y" * 10000


def hostile_answers():
    rank = {"job": HOSTILE, "host": HOSTILE, "gpu": "0", "pid": "7", "rank": "1"}
    names = "tidemark_job_"
    return but(**{
        "label_replace(tidemark_job_oom_seconds": vector(
            ({**rank, "finding": "oom_soon"}, "12"), ({**rank, "finding": "no_such_thing"}, "1"),
            ({"finding": "agent_silent", "instance": "-oProxyCommand=x:1", "job": "tidemark"}, "0"),
            ({"finding": "leak", "job": "j", "host": "a;b", "pid": "1$(x)"}, "5")),
        "peak_growth": vector(
            ({**rank, "__name__": names + "peak_allocated_bytes"}, "-5"),
            ({**rank, "__name__": names + "allocated_bytes"}, "NaN"),
            ({**rank, "__name__": names + "limit_bytes"}, "+Inf"),
            ({**rank, "__name__": names + "reserved_bytes"}, "1e300"),
            ({**rank, "__name__": names + "oom_risk"}, "77"),
            ({**rank, "__name__": names + "oom_seconds"}, "-3"),
            ({**rank, "__name__": names + "oom_high_seconds"}, "1e300"),
            ({**rank, "__name__": "something_else"}, "1"),
            ({**rank, "__name__": names + "allocated_bytes", "gpu": "1", "pid": "x", "rank": "-2"}, "1e18"),
            ({}, "1")),
        "quantile": vector(({"job": HOSTILE, "figure": "world"}, "1e18"), ({"job": HOSTILE, "figure": "ranks"}, "-1")),
    })


def test_hostile_labels_and_values():
    """Nothing of them drives the terminal or ends up in a command; what cannot be is not known."""
    with Server(hostile_answers()) as server:
        status, page, said = fleet(server.url)
        assert (status, said) == (1, "")
        status, answer, _ = fleet(server.url, "--json")
    assert "\033" not in page and "\007" not in page and "\u202e" not in page
    answer = json.loads(answer)
    rank = next(row for row in answer["ranks"] if row["pid"] == 7)
    assert rank["job"] == HOSTILE  # JSON has the whole, escaped
    assert [rank[key] for key in ("allocated", "peak", "limit", "reserved", "risk", "seconds_to_oom")] == [None] * 6
    other = next(row for row in answer["ranks"] if row["gpu"] == "1")
    assert (other["pid"], other["rank"], other["allocated"]) == (None, None, 10 ** 18)
    assert [(f["kind"], f["command"]) for f in answer["findings"]] == [
        ("oom_soon", None), ("leak", None), ("agent_silent", None)]
    assert answer["jobs"][0]["missing"] is None


def test_future_and_strange_samples():
    """Samples of a year that is to come, and a target that was always away."""
    up = {"job": "tidemark", "instance": "n:1"}
    scrapes = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": up, "values": [[NOW, "1"], [NOW + 1, "1"], [NOW + 2, "NaN"], [9e15, "1"]]}]}})
    with Server(but(**{"count_over_time": vector(({**up, "figure": "all"}, "9"), ({**up, "figure": "good"}, "3")),
                       "instance=~": scrapes, "up{job": vector((up, "1"))})) as server:
        status, page, said = fleet(server.url)
        assert (status, said) == (0, "") and "n:1 has no samples from " in page


def test_two_servers_that_scrape_the_same():
    """Each series comes twice, with a label that says whose: a finding is told once."""
    findings = [({"job": "j", "host": "n", "gpu": "0", "pid": "1", "rank": "0", "finding": "oom_soon", "replica": replica},
                 "10") for replica in "ab"]
    with Server(but(**{'"finding", "oom_soon"': vector(*findings), "up{job": vector(
            *[({"job": "tidemark", "instance": "n:1", "replica": replica}, "1") for replica in "ab"])})) as server:
        answer = json.loads(fleet(server.url, "--json")[1])
    assert len(answer["findings"]) == len(answer["nodes"]) == answer["critical"] == 1


# ---- the question

def test_names_are_quoted_in_queries():
    with Server(but()) as server:
        assert fleet(server.url + "/select/0/prometheus/", "--job", 'a"b\\c\nd')[0] == 0
        assert all(path.startswith("/select/0/prometheus/api/v1/query?") for path, _ in server.asked)
        asked = "\n".join(question for _, question in server.asked)
        assert 'job="a\\"b\\\\c\\nd"' in asked
        assert asked.count('job="a') == asked.count('job="a\\"b\\\\c\\nd"')
        times = {urllib.parse.parse_qs(urllib.parse.urlsplit(path).query).get("time", [""])[0]
                 for path, _ in server.asked}
        assert times == {"", f"{NOW:.3f}"}  # all about one moment


def test_log_in(tmp_path):
    """From files or the environment; nothing on the command line."""
    (tmp_path / "password").write_text("geheim\n", encoding="ascii")
    (tmp_path / "token").write_text("tok123\r\n", encoding="ascii")
    basic = "Basic " + base64.b64encode(b"ana:geheim").decode()
    with Server(but()) as server:
        for arguments, environment, expected in (
                ((), {}, None),
                (("--user", "ana", "--password-file", tmp_path / "password"), {}, basic),
                ((), {"TIDEMARK_PROMETHEUS_USER": "ana", "TIDEMARK_PROMETHEUS_PASSWORD": "geheim"}, basic),
                (("--token-file", tmp_path / "token"), {}, "Bearer tok123"),
                ((), {"TIDEMARK_PROMETHEUS_TOKEN": "tok123"}, "Bearer tok123")):
            server.heads.clear()
            assert fleet(server.url, *map(str, arguments), **environment)[0] == 0
            assert {head.get("Authorization") for head in server.heads} == {expected}
        server.heads.clear()
        assert fleet(server.url, TIDEMARK_PROMETHEUS_HEADERS="X-Scope-OrgID=team-a,X-B=c")[0] == 0
        assert {(head["X-Scope-OrgID"], head["X-B"]) for head in server.heads} == {("team-a", "c")}


@pytest.mark.parametrize("arguments, reason", [
    (("--password-file", "password"), "--password-file: whose? --user NAME says it"),
    (("--token-file", "missing"), "cannot read missing: No such file or directory"),
    (("--token-file", "empty"), "empty is empty"),
    (("--token-file", "large"), "large is too large for a password or token"),
    (("--token-file", "."), "cannot read .: Is a directory"),
    (("--token-file", "control"), "a name, password or token is too long or has control characters"),
    (("--timeout", "0"), "--timeout: '0' is not a time from 0.1 s to 3600 s, such as 5, 500ms or 1h"),
    (("--window", "5"), "--window: '5' is not a time from 10 s to 2.592e+06 s, such as 5, 500ms or 1h"),
    (("--rows", "-1"), "--rows: '-1' is not a number; 0 shows all"),
    (("--ca-file", "missing"), None),
])
def test_usage(tmp_path, arguments, reason):
    for name, text in {"password": "x", "empty": "\n", "large": "x" * 3000, "control": "a\tb"}.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    done = subprocess.run([program("tidemark"), "fleet", "--prometheus", "https://127.0.0.1:1", *arguments],
                          capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == f"tidemark: {reason}\n" if reason else "authorities missing" in done.stderr


def test_no_address():
    done = subprocess.run([program("tidemark"), "fleet"], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stderr) == (
        USAGE, "tidemark: where is Prometheus? --prometheus http://HOST:9090, or TIDEMARK_PROMETHEUS\n")


def test_https(tmp_path):
    """The certificate is verified, by name and by authority."""
    for name, alternative in ("good", "IP:127.0.0.1"), ("other", "DNS:elsewhere.example"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", "/CN=x", "-addext",
                        f"subjectAltName={alternative}"], cwd=tmp_path, check=True, capture_output=True)
    said = {}
    for name in "good", "other":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        with Server(but(), context) as server:
            said[name] = [fleet(server.url, *arguments) for arguments in (
                ("--ca-file", str(tmp_path / f"{name}.crt")), ())]
            said[name, "plain"] = fleet(server.url.replace("https", "http"))
    assert said["good"][0][0] == 0
    for found in said["good"][1], said["other"][0]:
        assert found[0] == NO_ANSWER
        assert "its certificate is not trusted (" in found[2] and "--ca-file FILE names who is" in found[2]
    assert said["good", "plain"][0] == NO_ANSWER
    with Server(but()) as server:
        status, _, text = fleet(server.url.replace("http", "https"))
        assert status == NO_ANSWER and "TLS fails: wrong version number; is it https?" in text


def test_nothing_of_ours():
    """A Prometheus that scrapes no agent: it says what to do."""
    with Server(but()) as server:
        status, page, said = fleet(server.url)
    assert (status, said) == (0, "")
    assert page.startswith("Prometheus has nothing of tidemark's agents.\n")
    assert "Run tidemark agent on each node" in page


def test_python_says_why(tmp_path):
    """RuntimeError with the command's words; nothing is asked with TIDEMARK=0."""
    url = f"http://127.0.0.1:{free_port()}"
    source = "import sys, tidemark\ntry:\n    tidemark.fleet(sys.argv[1])\nexcept RuntimeError as reason:\n    print(reason)"
    assert python(source, url) == (0, f"tidemark: {url}: cannot connect: Connection refused\n", "")
    off = "import tidemark\nview = tidemark.fleet('http://x')\nprint(view.nodes, view.findings, view.time, view)"
    assert python(off, TIDEMARK="0") == (0, "[] [] None nothing is wrong\n", "")
    (tmp_path / "token").write_text("tok", encoding="ascii")
    with Server(but()) as server:
        source = "import pathlib, sys, tidemark\nprint(tidemark.fleet(token_file=pathlib.Path(sys.argv[1])))"
        assert python(source, str(tmp_path / "token"), TIDEMARK_PROMETHEUS=server.url) == (0, "nothing is wrong\n", "")
        assert {head["Authorization"] for head in server.heads} == {"Bearer tok"}
