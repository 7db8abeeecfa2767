# SPDX-License-Identifier: MIT
"""A `tidemark serve` under test, and plain HTTP to it."""
import http.client
import os
import signal
import socket
import subprocess
import urllib.parse

from web_kit import BUILD, TIME_LIMIT_S


class Served:
    """One server; `link` is what it has printed."""

    def __init__(self, *arguments, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "SSH_"))}
        self.process = subprocess.Popen(
            [BUILD / "tidemark", "serve", *map(str, arguments)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**kept, "LANG": "C.UTF-8", **environment})
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            raise AssertionError(self.process.communicate()[1])
        self.said = ""  # what is printed below the link
        while not self.said.endswith("Ctrl-C ends it.\n"):
            self.said += self.process.stdout.readline()
        parts = urllib.parse.urlsplit(self.link)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]
        self.cookie = None

    def ask(self, path, method="GET", body=None, cookie=True, timeout=TIME_LIMIT_S, **fields):
        """(status, fields, body) of a request; fields' names have _ for -."""
        if cookie is True and self.cookie is None:
            self.enter()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        head = {k.replace("_", "-"): v for k, v in fields.items()}
        if cookie:
            head["Cookie"] = self.cookie if cookie is True else cookie
        try:
            connection.request(method, path, body, head)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def enter(self):
        """Open the link: the cookie that it gives is used from then on."""
        status, fields, _ = self.ask(f"{self.path}?token={self.token}", cookie=None)
        assert status == 303
        self.cookie = fields["Set-Cookie"].split(";")[0]
        return fields

    def sql(self, text):
        return self.ask("/api/sql", "POST", text, Content_Type="application/sql")

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=TIME_LIMIT_S)

    def close(self, number=signal.SIGINT):
        """(exit status, stderr)"""
        self.process.send_signal(number)
        err = self.process.communicate(timeout=TIME_LIMIT_S)[1]
        return self.process.returncode, err
