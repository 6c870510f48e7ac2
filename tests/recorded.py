"""A recorded host: the only fake. It answers exactly the questions that a recording holds, and keeps count."""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from ddprobe.model import (
    Chunk,
    Command,
    CommandResult,
    Connection,
    Container,
    Host,
    HttpRequest,
    HttpResult,
    Question,
    Result,
)
from ddprobe.redact import Redactor
from ddprobe.sessions.base import Session
from ddprobe.sessions.running import Running, Told


class RecordedSession(Session):
    """Answers from `{question text: answer}`. An unexpected question fails the test that asked it."""

    def __init__(self, host: Host, answers: Sequence[dict[str, Any]], folder: Path) -> None:
        super().__init__(host, Redactor(), threading.Event())
        self._answers: dict[str, dict[str, Any]] = {answer["ask"]: answer for answer in answers}
        assert len(self._answers) == len(answers), "a recording answers one question twice"
        self._folder = folder
        self.unasked = set(self._answers)

    @property
    def connection(self) -> Connection:
        return Connection(transport="recorded")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        return [self._answer(question) for question in questions]

    def _begin(self, command: Command) -> Running:
        """Its answer stands ready; `stopped: true` in the recording says that it was going on until then."""
        result = self._answer(command)
        assert isinstance(result, CommandResult)
        return Told(result)

    def _answer(self, question: Question) -> Result:
        text = self._recorded(_text(question))
        self.unasked.discard(text)
        answer = self._answers[text]
        road = {
            "started": float(answer.get("started", 0)),
            "seconds": float(answer.get("seconds", 0)),
            "truncated": bool(answer.get("truncated", False)),
            "timed_out": bool(answer.get("timed_out", False)),
            "failure": str(answer.get("failure", "")),
        }
        if isinstance(question, Command):
            ended = not (road["failure"] or road["timed_out"])
            return CommandResult(
                question=question,
                exit_code=answer.get("exit", 0) if ended else None,
                stdout=self._bytes(answer, "stdout"),
                stderr=self._bytes(answer, "stderr"),
                stopped=bool(answer.get("stopped", False)),
                **road,  # type: ignore[arg-type]
            )
        return HttpResult(
            question=question,
            status=answer.get("status", 200) if not road["failure"] else None,
            body=self._bytes(answer, "body"),
            chunks=tuple(Chunk(float(at), size) for at, size in answer.get("chunks", [])),
            via="channel",
            **road,  # type: ignore[arg-type]
        )

    def _recorded(self, text: str) -> str:
        """The question as the recording has it: in full, or its beginning followed by `…`."""
        if text in self._answers:
            return text
        for ask in self._answers:
            if ask.endswith("…") and text.startswith(ask.removesuffix("…")):
                return ask
        raise AssertionError(f"the recording has no answer to: {text}")

    def _bytes(self, answer: dict[str, Any], name: str) -> bytes:
        if f"{name}_base64" in answer:
            return base64.b64decode(answer[f"{name}_base64"])
        if f"{name}_file" in answer:
            return Path(self._folder, answer[f"{name}_file"]).read_bytes()
        return str(answer.get(name, "")).encode()


def _text(question: Question) -> str:
    """The question as recordings have it. Requests with a body differ by their key alone."""
    return (
        f"{question} ({question.key})"
        if isinstance(question, HttpRequest) and question.body
        else str(question)
    )


def recordings() -> list[Path]:
    """Every recording, as tests/recordings/<family>/<probe>/<case>.yaml."""
    return sorted((Path(__file__).parent / "recordings").glob("*/*/*.yaml"))


def load(path: Path) -> dict[str, Any]:
    """A recording's content, with only the keys that a recording has."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    unknown = set(content) - {"about", "settings", "host", "answers", "expect"}
    assert not unknown, f"{path}: unknown keys {unknown}"
    unknown = set(content["expect"]) - {
        "facts",
        "findings",
        "findings_include",
        "gaps",
        "outputs",
        "shows",
        "hides",
    }
    assert not unknown, f"{path}: unknown keys under expect {unknown}"
    return dict(content)


def host(content: dict[str, Any]) -> Host:
    """The host of a recording."""
    given = dict(content.get("host") or {})
    given.setdefault("name", "gpu1")
    if "container" in given:
        given["container"] = Container(**given["container"])
    known = {field.name for field in fields(Host)}
    assert set(given) <= known, f"not fields of Host: {set(given) - known}"
    return Host(**given)
