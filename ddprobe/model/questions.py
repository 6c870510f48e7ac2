"""What a probe may ask of a host: commands and requests, and what runs beside them."""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model.units import MIB


@dataclass(frozen=True, slots=True)
class Glob:
    """A path pattern that the host expands: the one word of a command that is not quoted.

    Only letters, digits and `_ . / * ? [ ] -` may stand in it; `readonly` refuses the rest.
    """

    pattern: str

    def __str__(self) -> str:
        return self.pattern


Word = str | Glob


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run on the host. A non-empty argv, never a shell line, so the policy can read it."""

    key: str
    """Names the answer within its step; also the file name of its evidence."""
    argv: tuple[Word, ...]
    stdin: bytes = b""
    timeout: float | None = None
    """Seconds; None takes the host's `command_timeout`. Enforced on both sides."""
    cap: int = MIB
    """Bytes of stdout kept. The rest is cut on the host and marked."""
    alone: bool = False
    """Worth a channel of its own beside the others (slow, or large)."""
    exits: tuple[int, ...] = (0,)
    """Exit codes that are an answer: grep's 1 says "no line matches"."""

    def __str__(self) -> str:
        return " ".join(str(word) for word in self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request to an inference server, as the host itself would send it."""

    key: str
    method: str
    path: str
    base: str
    """Scheme, address and port as seen from the host: `http://127.0.0.1:30000`."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout: float | None = None
    cap: int = 8 * MIB
    stream: bool = False
    statuses: tuple[int, ...] = (200,)
    """Status codes that are an answer."""
    about: str = ""
    """What a person waits for meanwhile: `repeat at 64k, prompt 2 of 4`."""

    def __str__(self) -> str:
        return f"{self.method} {self.base}{self.path}"


Question = Command | HttpRequest


@dataclass(frozen=True, slots=True)
class Begin:
    """Start this command beside the conversation, and go on asking. What is sent back is None.

    It runs until `End`, its timeout or the end of the conversation, whichever comes first. One that cannot be started
    says so in its answer.
    """

    command: Command


@dataclass(frozen=True, slots=True)
class End:
    """Stop the command that was begun under this key. What is sent back is its `CommandResult`.

    Without it the answer is taken when the conversation ends, however that comes.
    """

    key: str
