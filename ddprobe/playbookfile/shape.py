"""The form of a playbook's file: its keys and the types of their values. What they mean together is checked elsewhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

OUTCOMES = ("skip", "info", "pass", "warn", "unknown", "fail")
STATUSES = ("done", "incomplete", "skipped", "not_run", "interrupted")

Outcomes = Literal["skip", "info", "pass", "warn", "unknown", "fail"]
Statuses = Literal["done", "incomplete", "skipped", "not_run", "interrupted"]


def listed(value: Any) -> Any:
    """One value where a list may stand."""
    return value if isinstance(value, list) or value is None else [value]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class VarKeys(_Strict):
    """A var."""

    type: Literal["text", "int", "number", "bool", "size", "duration", "list", "sizes"]
    default: Any = None
    help: str


class Limits(_Strict):
    """What a condition may look at."""

    outcome: Annotated[list[Outcomes], BeforeValidator(listed)] | None = None
    verdict: Annotated[list[str], BeforeValidator(listed)] | None = None
    status: Annotated[list[Statuses], BeforeValidator(listed)] | None = None
    finding: Annotated[list[str], BeforeValidator(listed)] | None = None
    field: str | None = None
    at_least: Any = None
    at_most: Any = None
    equals: Any = None
    known: bool | None = None


class ConditionKeys(Limits):
    """`when` of a step."""

    step: str


class ExpectKeys(Limits):
    """An entry of `expect`."""

    about: str
    step: str | None = None
    otherwise: Literal["fail", "warn"] = "fail"


class StepKeys(_Strict):
    """An entry of `steps`."""

    id: str
    probe: str
    given: dict[str, Any] | None = Field(default=None, alias="with")
    needs: Annotated[list[str], BeforeValidator(listed)] | None = None
    when: Annotated[list[ConditionKeys], BeforeValidator(listed)] | None = None
    timeout: Any = None


class BookKeys(_Strict):
    """The whole file."""

    name: str
    about: str
    vars: dict[str, VarKeys] | None = None
    hypotheses: list[str] | None = None
    steps: list[StepKeys]
    expect: list[ExpectKeys] | None = None
