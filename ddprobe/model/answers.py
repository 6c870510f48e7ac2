"""What came back of a question, whole or not, and all that a probe got of one host."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ddprobe.errors import Unanswered
from ddprobe.model.hosts import Host
from ddprobe.model.questions import Command, HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command answered, already redacted. `text` raises unless the answer is whole."""

    question: Command
    exit_code: int | None = None
    """None when the command never ended in our sight."""
    stdout: bytes = b""
    stderr: bytes = b""
    started: float = 0.0
    """Seconds since the epoch, on the laptop's clock."""
    seconds: float = 0.0
    truncated: bool = False
    """stdout reached the cap."""
    stderr_truncated: bool = False
    timed_out: bool = False
    stopped: bool = False
    """It was begun beside the conversation and ended by us, as planned: what it said until then is its answer."""
    failure: str = ""
    """Why the road failed, when it did; then nothing else here is an answer."""

    @property
    def key(self) -> str:
        return self.question.key

    @property
    def trouble(self) -> str:
        """In words, why this is no whole answer; empty when it is one."""
        if self.failure:
            return self.failure
        if self.timed_out:
            return f"timed out after {self.seconds:.1f} s ({len(self.stdout)} bytes had come)"
        if self.truncated:
            # Before the exit code: a program whose output is cut ends by SIGPIPE.
            return f"cut at {len(self.stdout)} bytes"
        if self.stopped:
            return ""
        if self.exit_code not in self.question.exits:
            said = self.stderr.decode("utf-8", "replace").strip().splitlines()
            return f"exit code {self.exit_code}" + (f": {said[-1][:300]}" if said else "")
        return ""

    @property
    def text(self) -> str:
        """stdout as text (bytes that are not UTF-8 become U+FFFD). Raises `Unanswered` unless whole."""
        if self.trouble:
            raise Unanswered(self.key, self.trouble)
        return self.stdout.decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        return not self.trouble


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a response body: when it came (seconds after the request was sent) and its length in bytes."""

    at: float
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResult:
    """What a server answered, already redacted."""

    question: HttpRequest
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    chunks: tuple[Chunk, ...] = ()
    """Arrival times of the body's pieces, in order; their sizes are those before redaction."""
    started: float = 0.0
    seconds: float = 0.0
    truncated: bool = False
    timed_out: bool = False
    failure: str = ""
    via: str = ""
    """`channel` (direct-tcpip), `curl` (on the host, forwarding was refused) or `direct` (local)."""

    @property
    def key(self) -> str:
        return self.question.key

    @property
    def trouble(self) -> str:
        if self.failure:
            return self.failure
        if self.timed_out:
            return f"timed out after {self.seconds:.1f} s ({len(self.body)} bytes had come)"
        if self.status not in self.question.statuses:
            said = self.body.decode("utf-8", "replace").strip().splitlines()
            return f"HTTP {self.status}" + (f": {said[0][:300]}" if said else "")
        if self.truncated:
            return f"cut at {len(self.body)} bytes"
        return ""

    @property
    def text(self) -> str:
        """The body as text. Raises `Unanswered` unless the status is one asked for and the body whole."""
        if self.trouble:
            raise Unanswered(self.key, self.trouble)
        return self.body.decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        return not self.trouble


Result = CommandResult | HttpResult


@dataclass(frozen=True, slots=True)
class Evidence:
    """The transcript of one probe on one host, in the order of asking."""

    host: Host
    results: tuple[Result, ...] = ()

    def has(self, key: str) -> bool:
        return any(result.key == key for result in self.results)

    def result(self, key: str) -> Result:
        """The last answer under this key. Raises `Unanswered` when it was never asked."""
        for result in reversed(self.results):
            if result.key == key:
                return result
        raise Unanswered(key, "was not asked")

    def command(self, key: str) -> CommandResult:
        result = self.result(key)
        if not isinstance(result, CommandResult):
            raise Unanswered(key, "is an HTTP answer, not a command's")
        return result

    def text(self, key: str) -> str:
        """The whole answer as text. Raises `Unanswered` when there is none."""
        return self.result(key).text

    def json(self, key: str) -> Any:
        """The whole answer as JSON. Raises `Unanswered` when there is none or it is not JSON."""
        text = self.text(key)
        try:
            return json.loads(text)
        except ValueError as error:
            raise Unanswered(key, f"is not JSON: {error}") from None
        except RecursionError:
            raise Unanswered(key, "is JSON nested too deep to be read") from None

    def started_with(self, prefix: str) -> tuple[Result, ...]:
        """Every answer whose key begins with `prefix`, in order."""
        return tuple(result for result in self.results if result.key.startswith(prefix))
