"""MalformedRequest requests, drawn from a seed: what a fuzzer sends, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from engram.operations.catalogue import OPERATIONS
from engram.server.app import QUESTIONS
from engram.server.routes import address_of

ADDRESSES = [(one.http.method, address_of(one), one.name.replace("-", "_")) for one in OPERATIONS]
ELSEWHERE = (
    *("/", "/v1", "/v1/health", "/v1/ready", "/openapi.json", "/mcp", "/docs", "/v1/keys", "//"),
    *("/v1/namespaces", "/v1/namespaces/default/users/ada", "/favicon.ico", "/v1/../etc/passwd"),
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO", "get")
CONTENT_TYPES = (
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""),
    *("application/json; charset=utf-16", "application/vnd.api+json", ";;=", "application/xml"),
)
TRICKS = (
    *("%2e%2e", "..", "%00", "%252e%252e", "%2f", "%5c", "%ff", "%c0%ae", ";x=1", "%e2%80%ae"),
    *("%ED%A0%80", "x" * 3000, "%", "%zz", "%20", "~", "*", "ADA", "ada%00", "ada/../bob", "."),
)
HEADERS = (
    ("Host", "rebound.example"),
    ("Host", "127.0.0.1@rebound.example"),
    ("Origin", "http://rebound.example"),
    ("Origin", "null"),
    ("X-Forwarded-For", "127.0.0.1"),
    ("X-Forwarded-Host", "rebound.example"),
    ("X-Original-URL", "/v1/namespaces/other/users/bob/stats"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("Engram-User", "bob"),
    ("X-Request-ID", "<script>"),
    ("X-Request-ID", "x" * 5000),
    ("Content-Encoding", "gzip"),
    ("Accept", "text/html;q=\xe9"),
    ("Cookie", "a=" + "b" * 20_000),
    ("Range", "bytes=0-1"),
    ("If-None-Match", "*"),
    ("Authorization", "Basic YWRhOmFkYQ=="),
    ("Expect", "100-continue"),
    ("Upgrade", "websocket"),
    ("Transfer-Encoding", "gzip"),
    ("Content-Length", "-1"),
    ("Content-Length", "99999999999999999999"),
    ("Content-Length", "\xb2"),
)


@dataclass
class MalformedRequest:
    """One request.

    Attributes:
        who: Whose key it carries.
        word: Stands in what it says; no refusal and no log may repeat it.
        name: Of the address, where it is one of the API; without tricks in it.
        cut: Less is sent than announced, or what is sent is no HTTP.
    """

    who: str
    word: str
    name: str = ""
    method: str = "POST"
    target: str = "/"
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    framing: str = "length"

    @property
    def cut(self) -> bool:
        return self.framing in ("short", "garbage")

    def to_bytes(self) -> bytes:
        """As it goes over the wire."""
        if self.framing == "garbage":
            return self.body + b"\r\n\r\n"
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        body = self.body
        if self.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        elif self.framing == "short":
            lines.append(f"Content-Length: {len(body) + 10}")
        elif self.framing == "length":
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


class MalformedRequests:
    """Draws requests.

    Args:
        seed: The same seed gives the same requests, for the same keys and ids.
        keys: By who holds them.
        ids: Of memories of others, which requests name.
    """

    def __init__(self, seed: int, keys: dict[str, str], ids: list[str]) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing secret is drawn
        self._seed = seed
        self._keys = keys
        self._ids = ids
        self._drawn = 0

    def draw(self) -> MalformedRequest:
        """The next request: one that would be in order, and what makes it odd."""
        chance = self._random
        self._drawn += 1
        who = chance.choices([*self._keys, "nobody"], [3, 2, 3, 1])[0]
        odd = MalformedRequest(who=who, word=f"zq{self._seed}x{self._drawn}z")
        # What writes is drawn more often than one address of many would be.
        writes = who == "writer" and chance.random() < 0.2
        odd.method, path, odd.name = ADDRESSES[0] if writes else chance.choice(ADDRESSES)
        odd.target = path.format(
            namespace=chance.choice(("default", "default", "default", "other")),
            user_id="scratch" if who == "writer" else chance.choice(("ada", "ada", "bob")),
            session_id="s1",
            memory_id=chance.choice(self._ids),
        )
        odd.headers = [("Host", "127.0.0.1"), *self._authorization(who)]
        body = self._in_order(odd)
        if odd.method == "POST":
            odd.headers.append(("Content-Type", "application/json"))
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            chance.choice((self._field, self._field, self._field, self._more))(body, odd.word)
        odd.body = json.dumps(body).encode() if odd.method == "POST" else b""
        tricks: list[Callable[[MalformedRequest], None]] = [
            self._bytes,
            self._path,
            self._header,
            self._method,
        ]
        if chance.random() < 0.5:
            chance.choice(tricks)(odd)
        return odd

    def _authorization(self, who: str) -> list[tuple[str, str]]:
        if who in self._keys:
            return [("Authorization", f"Bearer {self._keys[who]}")]
        wrong = ("", "Bearer", "Bearer engram_", "Bearer engram_wrong", "Bearer \xe9", "bearer x y")
        return (
            [("Authorization", self._random.choice(wrong))] if self._random.random() < 0.8 else []
        )

    def _in_order(self, odd: MalformedRequest) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(json.dumps(QUESTIONS.get(odd.name, {})))
        if odd.name == "encode":
            body = {"turns": [{"content": f"I know {odd.word}.", "message_id": odd.word}]}
        if "memory_id" in body:
            body["memory_id"] = self._random.choice(self._ids)
        if "query" in body:
            body["query"] = f"Who knows {odd.word}?"
        return body

    def _value(self, word: str) -> Any:
        chance = self._random
        values: list[Any] = [
            *(None, True, -1, 0, 1.5, 10**30, -(2**63) - 1, 1e308, float("nan"), float("inf")),
            *("", " ", "\x00", "\ud800", "\u202e\u2066", "\ufeff", "é" * 500, "🤷‍♀️", word),
            *(
                f"{word}\x00",
                f"{word}\udfff",
                f"{word} " * 3000,
                "../" + word,
                "%2e%2e",
                "' OR 1=1",
            ),
            *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "2026-02-30", "9999-12-31"),
            *([], {}, [[]], [None], [word] * 100, {word: word}, {"": 1}, {"\x00": 1}, ["\ud800"]),
            *(chance.choice(self._ids), [chance.choice(self._ids)], "x" * 70_000),
        ]
        if chance.random() < 0.1:
            value: Any = word
            for _ in range(chance.choice((20, 40, 150, 400))):
                value = [value] if chance.random() < 0.5 else {"a": value}
            return value
        return chance.choice(values)

    def _field(self, body: dict[str, Any], word: str) -> None:
        """Another value, somewhere."""
        inside = body
        turns = body.get("turns")
        if isinstance(turns, list) and turns and self._random.random() < 0.8:
            inside = turns[0] if isinstance(turns[0], dict) else body
            known = ["role", "content", "speaker", "timestamp", "message_id", "metadata", "tags"]
            inside[self._random.choice([*known, "importance"])] = self._value(word)
            return
        known = [
            *inside,
            "limit",
            "as_of",
            "at",
            "name",
            "session_id",
            "memory_id",
            "tags",
            "forms",
        ]
        inside[self._random.choice(known)] = self._value(word)

    def _more(self, body: dict[str, Any], word: str) -> None:
        """A field too many, or one too few."""
        if body and self._random.random() < 0.4:
            body.pop(self._random.choice(list(body)))
            return
        names = ("dry_run", "test_only", "namespace", "user_id", "__proto__", f"{word} is", "\x00")
        body[self._random.choice(names)] = self._value(word)

    def _bytes(self, odd: MalformedRequest) -> None:
        chance, body, word = self._random, odd.body, odd.word.encode()
        odd.framing = chance.choice(("length", "length", "chunked", "short", "garbage", "none"))
        odd.body = chance.choice(
            (
                *(body, body[: len(body) // 2], b"", b"null", b"[]", b'"' + word, b"{" + word),
                *(b"[" * 50_000, b'{"a":' * 50_000, b"9" * 10_000, b"\xff\xfe\x00", b"-", b"NaN"),
                *(body[:-1] + b',"query":"' + word + b'"}', b"\xef\xbb\xbf" + body, body + word),
                *(body.decode().encode("utf-16"), bytes(chance.randrange(256) for _ in range(50))),
            )
        )
        if odd.framing == "none":
            odd.body = b""

    def _path(self, odd: MalformedRequest) -> None:
        chance = self._random
        if chance.random() < 0.15:
            odd.target, odd.name = chance.choice(ELSEWHERE), ""
            return
        parts = odd.target.split("/")
        place = chance.randrange(1, len(parts))
        trick = chance.choice(TRICKS)
        parts[place] = trick if chance.random() < 0.5 else parts[place] + trick
        odd.target = "/".join(parts)
        odd.name = ""
        if chance.random() < 0.3:
            odd.target += chance.choice(
                ("?", "?limit=%00", "?cursor=" + "W" * 3000, "?a=1&a=2", "/")
            )

    def _header(self, odd: MalformedRequest) -> None:
        chance = self._random
        if chance.random() < 0.3:
            named = ("Content-Type", chance.choice(CONTENT_TYPES))
            odd.headers = [one for one in odd.headers if one[0] != "Content-Type"] + [named]
            return
        name, value = chance.choice(HEADERS)
        if chance.random() < 0.5:
            odd.headers = [one for one in odd.headers if one[0] != name]
        odd.headers.insert(chance.randrange(len(odd.headers) + 1), (name, value))
        if name in ("Content-Length", "Transfer-Encoding"):
            odd.framing = "short"

    def _method(self, odd: MalformedRequest) -> None:
        odd.method = self._random.choice(METHODS)
