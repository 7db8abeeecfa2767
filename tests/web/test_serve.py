# SPDX-License-Identifier: MIT
"""`tidemark serve`: who may ask, what is answered, what it survives. test_serve_page.py has the page."""
import json
import random
import struct
import time

import pytest
from serve_kit import Served
from web_kit import sql, tidemark


@pytest.fixture(name="run", scope="module")
def fixture_run(page):
    return page("tiny")[0]


@pytest.fixture(name="served", scope="module")
def fixture_served(run):
    served = Served(run)
    yield served
    assert served.close()[0] == 0


def unpacked(body):
    """The JSON of a page's data, and a function that gives a column."""
    n = struct.unpack_from("<I", body)[0]
    data = json.loads(body[4:4 + n])

    def column(name):
        start, size, count, kind = data["drawn"]["columns"][name]
        out, value, shift, last = [], 0, 0, 0
        for byte in body[4 + n + start:4 + n + start + size]:
            value |= (byte & 127) << shift
            shift += 7
            if byte > 127:
                continue
            if kind == 1:
                last += -(value + 1) // 2 if value & 1 else value // 2
                value = last
            out.append(value)
            value = shift = 0
        assert len(out) == count
        return out

    return data, column


# ---- who may ask

def test_nothing_without_the_link(served):
    for path in ("/", "/page.js", "/api/page", "/api/events", "/?token=", "/?token=" + "0" * 32,
                 f"/api/page?token={served.token}"):
        assert served.ask(path, cookie=None)[0] == 403
    assert served.ask("/", cookie="tidemark-1=" + "0" * 32)[0] == 403
    assert served.ask("/", cookie=f"tidemark-{served.port}={served.token}")[0] == 403


def test_link_becomes_a_cookie(served):
    fields = served.enter()
    assert fields["Location"] == "./"
    assert fields["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert served.token not in fields["Set-Cookie"]
    assert served.ask("/")[0] == 200
    assert served.ask("/", cookie=f"other=1; {served.cookie}")[0] == 200


@pytest.mark.parametrize("host, status", [("evil.example", 421), ("evil.example:80", 421), ("", 421),
                                          ("localhost.evil.example", 421), ("[::1", 421),
                                          ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200)])
def test_host(served, host, status):
    assert served.ask("/", Host=host)[0] == status


def test_fields_of_answers(served):
    for path in ("/", "/page.js", "/style.css", "/api/summary", "/none"):
        fields = served.ask(path)[1]
        assert fields["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert (fields["X-Content-Type-Options"], fields["Cache-Control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize("method, path, status", [
    ("HEAD", "/", 405), ("PUT", "/", 405), ("DELETE", "/api/page", 405), ("OPTIONS", "/", 405),
    ("POST", "/", 405), ("POST", "/api/page", 405), ("GET", "/api/sql", 405), ("GET", "/api/none", 404),
    ("GET", "/../../etc/passwd", 404), ("GET", "/api/node", 404), ("GET", "/x" * 200, 414),
    ("GET", "/?" + "x" * 600, 414), ("POST", "/api/sql", 415)])
def test_method_and_path(served, method, path, status):
    assert served.ask(path, method, "" if method == "POST" else None)[0] == status


def test_sizes(served):
    assert served.ask("/", X="y" * 9000)[0] == 431
    sent = served.ask("/api/sql", "POST", "x" * 70000, Content_Type="application/sql")
    assert sent[0] == 413
    status, _, body = served.sql("SELECT 1 AS x --" + "y" * 60000)
    assert (status, json.loads(body)["rows"]) == (200, [[1]])


def test_base_path_and_ssh(run):
    served = Served(run, "--base-path", "/user/me/proxy/8000", SSH_CONNECTION="10.0.0.1 5 10.0.0.2 22")
    assert served.path == "/user/me/proxy/8000/"
    assert served.enter()["Set-Cookie"].endswith("Path=/user/me/proxy/8000/")
    for path in ("/", "/user/me/proxy/8000/", "/user/me/proxy/8000/api/summary", "/api/summary"):
        assert served.ask(path)[0] == 200
    assert served.close() == (0, "")
    assert served.said.startswith("From the machine that you sit at: "
                                  f"ssh -L {served.port}:127.0.0.1:{served.port} 10.0.0.2\n")


def test_open_to_all_is_said(run):
    served = Served(run, "--listen", "0.0.0.0")
    status, err = served.close()
    assert status == 0 and "other machines can connect" in err


# ---- what is answered

def test_summary_is_the_report(served, run):
    report = json.loads(tidemark("report", run, "--json"))
    found = json.loads(served.ask("/api/summary")[2])
    assert found["live"] is False and found["report"] == {**report, "processes": report["processes"]}


def test_sql(served, run):
    query = "SELECT category, sum(size) AS bytes, 'a\"<b>' AS t, NULL AS n, 1.5 AS f FROM peak GROUP BY 1"
    found = json.loads(served.sql(query)[2])
    wanted = sql(run, query)
    assert [dict(zip(found["columns"], row)) for row in found["rows"]] == wanted
    assert found["more"] is False


def test_sql_is_limited(served):
    found = json.loads(served.sql("SELECT id FROM allocations a, (SELECT 1 UNION SELECT 2)")[2])
    assert len(found["rows"]) == 1000 and found["more"] is True
    for wrong in ("CREATE TABLE x (a)", "ATTACH '/tmp/x' AS x", "SELECT load_extension('x')", "", "SELECT"):
        assert served.sql(wrong)[0] == 422


@pytest.mark.parametrize("part", [0.0, 0.13, 0.2, 0.37, 0.5, 0.66, 0.8, 0.95])
def test_window_is_that_of_sql(served, run, part):
    """Bins, layers and blocks of a window, which SQL counts too."""
    end = sql(run, "SELECT max(end_ns) AS e FROM processes")[0]["e"]
    start, end = round(end * part), round(end * (part + 0.05))
    data, column = unpacked(served.ask(f"/api/timeline?t0={start}&t1={end}&width=64")[2])
    drawn = data["drawn"]
    assert (drawn["timeline"]["start_ns"], drawn["timeline"]["end_ns"], drawn["timeline"]["bins"]) == (start, end, 64)
    assert drawn["blocks"]["window_start_ns"] <= start and drawn["blocks"]["window_end_ns"] >= end
    wanted = sql(run, "SELECT alloc_ns, size FROM allocations WHERE device = 'cpu' AND "
                      f"alloc_ns <= {end} AND (free_ns IS NULL OR free_ns >= {start}) ORDER BY 1, 2")
    lives = [a + life - 1 if life else end for a, life in zip(column("blocks.alloc"), column("blocks.life"))]
    found = sorted((a, s) for a, s, e in zip(column("blocks.alloc"), column("blocks.size"), lives)
                   if a <= end and e >= start)
    assert found == [(w["alloc_ns"], w["size"]) for w in wanted]
    most, at = column("bins.0.max"), column("bins.0.at")
    layers = [column(x["column"]) for x in drawn["timeline"]["layers"] if x["by"] == "category"]
    for i in range(64):
        assert sum(layer[i] for layer in layers) == most[i]
    frees = {row["free_ns"] for row in sql(run, "SELECT DISTINCT free_ns FROM allocations")}
    clear = [i for i in range(64) if at[i] not in frees]  # else live_at() is of after the free
    for i in (clear[0], clear[len(clear) // 2], clear[-1]):
        assert sql(run, f"SELECT coalesce(sum(size), 0) AS s FROM live_at({at[i]})")[0]["s"] == most[i]


def test_peak_is_that_of_sql(served, run):
    found = json.loads(served.ask("/api/peak?by=module")[2])
    wanted = sql(run, "SELECT module AS key, sum(size) AS bytes, count(*) AS blocks FROM peak GROUP BY 1 "
                      "ORDER BY 2 DESC, 1")
    assert sorted(map(str, found["by"])) == sorted(map(str, wanted))
    at = sql(run, "SELECT end_ns / 2 AS t FROM processes")[0]["t"]
    found = json.loads(served.ask(f"/api/peak?t={at}&by=category")[2])
    wanted = sql(run, f"SELECT category AS key, sum(size) AS bytes, count(*) AS blocks FROM live_at({at}) GROUP BY 1")
    assert sorted(map(str, found["by"])) == sorted(map(str, wanted))
    assert served.ask("/api/peak?by=none")[0] == 400
    assert served.ask("/api/timeline?t0=9&t1=8")[0] == 400


# ---- what it survives

def test_malformed_requests(served):
    """Thousands of broken requests, each on its own connection and in pieces; it still serves."""
    chance = random.Random(26)
    served.enter()
    good = (f"POST /api/sql HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie}\r\n"
            "Content-Type: application/sql\r\nContent-Length: 8\r\n\r\nSELECT 1").encode()
    for i in range(4000):
        if i % 200 == 0:
            assert served.ask("/")[0] == 200
        bytes_ = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(bytes_))
            bytes_[at:at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 4))
        with served.connect() as s:
            try:
                s.sendall(bytes_[:chance.randrange(1, len(bytes_) + 1)])
            except (BrokenPipeError, ConnectionResetError):
                pass
    assert served.ask("/")[0] == 200
    assert served.process.poll() is None


def test_slow_loris(served):
    """A crowd that sends a byte now and then does not keep a client out."""
    crowd = [served.connect() for _ in range(200)]
    for s in crowd:
        try:
            s.sendall(b"GET / HTTP/1.1\r\nX: ")
        except (BrokenPipeError, ConnectionResetError):
            pass
    began = time.monotonic()
    assert served.ask("/", timeout=5)[0] == 200
    assert time.monotonic() - began < 2
    for s in crowd:
        s.close()


def test_long_query_ends_and_blocks_nothing(served):
    """The page is answered while a query runs; the query is ended."""
    served.enter()
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    with served.connect() as s:
        s.sendall((f"POST /api/sql HTTP/1.1\r\nHost: localhost\r\nCookie: {served.cookie}\r\nContent-Type: "
                   f"application/sql\r\nContent-Length: {len(endless)}\r\n\r\n{endless}").encode())
        began = time.monotonic()
        assert served.ask("/page.js")[0] == 200
        assert time.monotonic() - began < 2
        answer = s.recv(4096)
        assert answer.startswith(b"HTTP/1.1 422 ")


def test_usage(run):
    for arguments in ([run, "--live"], [], [run, "--port", "99999"], [run, "--base-path", "x"],
                      [run, "--port", "1", "--listen", "127.0.0.1:0"]):
        with pytest.raises(AssertionError, match="tidemark"):
            Served(*arguments)
