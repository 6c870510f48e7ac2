"""The arm `chat`: what each engine is asked for its template, which chats are then measured, and a whole measurement."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ddprobe import arms, engines, runner
from ddprobe.arms.base import Ids, Needs, Script
from ddprobe.engines.generation import Generation, Serving
from ddprobe.engines.llamacpp_generation import LlamaCppGeneration
from ddprobe.engines.sglang_generation import SGLangGeneration
from ddprobe.engines.vllm_generation import VLLMGeneration
from ddprobe.errors import Unanswered
from ddprobe.facts import CommitPoint, CommitRequest, CommitSetup
from ddprobe.lab import hosts
from ddprobe.lab.machine import Machine
from ddprobe.model import HttpRequest, HttpResult, Step, StepRecord
from ddprobe.probes.draft._commit_chat import Rendered, rendered, unrendered
from ddprobe.probes.draft._commit_target import Target
from ddprobe.probes.draft.commit import DraftCommit
from ddprobe.readonly import check
from tests.lab_session import LabSession
from tests.silent import SilentWriter

BASE = "http://127.0.0.1:30000"
Says = tuple[int, str]
"""Status and body of an answer."""


def answered(request: HttpRequest, says: Says) -> HttpResult:
    status, body = says
    return HttpResult(question=request, status=status, body=body.encode())


def render(dialect: Generation, *answers: Says, **told: Any) -> tuple[list[HttpRequest], Ids]:
    """The requests of a rendering that gets these answers, each allowed by the policy, and the ids."""
    rendering = dialect.render("chat-amber", BASE, "amber", **told)
    asked = [next(rendering)]
    try:
        for says in answers:
            check(asked[-1])
            asked.append(rendering.send(answered(asked[-1], says)))
    except StopIteration as end:
        return asked, end.value
    raise AssertionError("it asks for more")


def sent(request: HttpRequest) -> tuple[str, Any]:
    return f"{request.method} {request.path}", json.loads(request.body)


# --- what is asked -----------------------------------------------------------------------------------------

MESSAGES = [{"role": "user", "content": "amber"}]
IDS = (200, '{"tokens":[257,28,258],"count":3,"max_model_len":512}')


@pytest.mark.parametrize("dialect", [SGLangGeneration(), VLLMGeneration()])
@pytest.mark.parametrize(
    ("thinking", "switches"),
    [
        (None, {}),
        (True, {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}),
        (False, {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}),
    ],
)
def test_a_tokenizer_that_renders_messages(
    dialect: Generation, thinking: bool | None, switches: dict[str, Any]
) -> None:
    asked, ids = render(dialect, IDS, model="tiny", thinking=thinking)
    assert [sent(request) for request in asked] == [
        ("POST /tokenize", {"model": "tiny", "messages": MESSAGES, **switches})
    ]
    assert ids == (257, 28, 258)


def test_llama_cpp_gives_a_text_that_is_then_tokenised_with_its_special_tokens() -> None:
    text = "<|im_start|>user\namber<|im_end|>\n<|im_start|>assistant\n"
    asked, ids = render(
        LlamaCppGeneration(), (200, json.dumps({"prompt": text})), (200, '{"tokens":[1,2,3]}'), thinking=False
    )
    assert [sent(request) for request in asked] == [
        (
            "POST /apply-template",
            {"messages": MESSAGES, "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
        ("POST /tokenize", {"content": text, "add_special": True, "parse_special": True}),
    ]
    assert len({request.key for request in asked}) == 2
    assert ids == (1, 2, 3)


@pytest.mark.parametrize(
    ("dialect", "says", "why"),
    [
        (
            SGLangGeneration(),
            (400, '{"object":"error","message":"tokenizer.chat_template is not set","code":400}'),
            "HTTP 400: tokenizer.chat_template is not set",
        ),
        # A release whose tokenizer takes texts alone.
        (
            SGLangGeneration(),
            (422, '{"detail":"prompt: Field required"}'),
            "HTTP 422: prompt: Field required",
        ),
        (SGLangGeneration(), (404, '{"detail":"Not Found"}'), "HTTP 404: Not Found"),
        (SGLangGeneration(), (200, '{"tokens":"amber"}'), "no token ids"),
        (
            VLLMGeneration(),
            (400, '{"error":{"message":"default chat template is no longer allowed","code":400}}'),
            "HTTP 400: default chat template is no longer allowed",
        ),
        (LlamaCppGeneration(), (404, '{"error":{"code":404,"message":"File Not Found"}}'), "File Not Found"),
        (LlamaCppGeneration(), (200, '{"prompt":7}'), "the answer holds no prompt"),
        (LlamaCppGeneration(), (200, "[]"), "the answer holds no prompt"),
    ],
)
def test_a_server_that_renders_no_chat_says_why(dialect: Generation, says: Says, why: str) -> None:
    with pytest.raises(Unanswered, match=why):
        render(dialect, says)


# --- which chats are measured ------------------------------------------------------------------------------

Template = Callable[[bool | None], tuple[list[int], list[int]] | None]
"""Head and tail for a way of thinking; None where the server refuses."""
WORDS = {"amber": [50, 51], "violet": [60]}


def shown(
    template: Template, names: tuple[str, ...] = ("repeat", "chat"), words: dict[str, list[int]] = WORDS
) -> tuple[Rendered, int]:
    """What is left of these arms on a server with this template, and how many requests that took."""
    scripts = arms.scripts(names, Needs(seed=1))
    target = Target(engine=engines.TABLE["sglang"], base=BASE, server=None, serving=Serving(model="tiny"))
    conversation = rendered(target, scripts)
    count, keys = 0, set[str]()
    try:
        asked = next(conversation)
        while True:
            assert isinstance(asked, HttpRequest)
            count, keys = count + 1, keys | {asked.key}
            body = json.loads(asked.body)
            parts = template(body.get("chat_template_kwargs", {}).get("enable_thinking"))
            if parts is None:
                says = (400, '{"object":"error","message":"no template"}')
            else:
                (head, tail), (message,) = parts, body["messages"]
                says = (200, json.dumps({"tokens": [*head, *words[message["content"]], *tail]}))
            asked = conversation.send(answered(asked, says))
    except StopIteration as end:
        assert len(keys) == count
        return end.value, count


def labels(scripts: tuple[Script, ...]) -> list[str]:
    return [script.label for script in scripts]


def test_a_template_that_knows_no_thinking_is_measured_once() -> None:
    found, _ = shown(lambda _: ([1, 2], [3, 4]))
    assert labels(found.scripts) == ["repeat", "chat"]
    assert found.tokens == {"chat: head": (1, 2), "chat: tail": (3, 4)}
    assert (found.left_out, found.gaps) == ((), ())


def test_a_template_that_thinks_unless_told_not_to_is_measured_in_both_ways() -> None:
    found, _ = shown(lambda thinking: ([1, 2], [3, 7, 8] if thinking is False else [3]))
    assert labels(found.scripts) == ["repeat", "chat thinking", "chat plain"]
    assert found.tokens == {
        "chat thinking: head": (1, 2), "chat thinking: tail": (3,), "chat plain: head": (1, 2), "chat plain: tail": (3, 7, 8),
    }  # fmt: skip
    assert found.left_out == ("chat by itself: the template then renders what is measured as chat thinking",)
    assert found.gaps == ()


def test_a_third_way_by_itself_is_measured_too() -> None:
    heads = {None: [1], True: [2], False: [3]}
    found, _ = shown(lambda thinking: (heads[thinking], []))
    assert labels(found.scripts) == ["repeat", "chat", "chat thinking", "chat plain"]
    assert found.left_out == ()


def test_a_server_without_a_template_measures_the_rest_and_says_so() -> None:
    found, count = shown(lambda _: None)
    assert labels(found.scripts) == ["repeat"]
    assert count == 1
    (gap,) = found.gaps
    assert (gap.subject, gap.reason) == ("chat", "the server does not render a chat (HTTP 400: no template)")
    assert [cite.artefact for cite in gap.cites] == ["chat-amber"]
    assert found.left_out == (f"chat: {gap.reason}",)


def test_a_message_that_is_not_shown_is_no_template() -> None:
    found, _ = shown(lambda _: ([1, 2], [3]), words={"amber": [], "violet": []})
    (gap,) = found.gaps
    assert "does not show a message as it is" in gap.reason
    assert labels(found.scripts) == ["repeat"]


def test_a_way_of_thinking_that_is_refused_leaves_the_template_as_it_is() -> None:
    found, _ = shown(lambda thinking: None if thinking else ([1], [3]))
    assert labels(found.scripts) == ["repeat", "chat"]
    assert [gap.subject for gap in found.gaps] == ["chat thinking"]


def test_other_arms_ask_for_no_template() -> None:
    found, count = shown(lambda _: None, ("repeat", "prose"))
    assert (labels(found.scripts), count, found.gaps) == (["repeat", "prose"], 0, ())


def test_a_plan_counts_no_template() -> None:
    assert set(unrendered(arms.scripts(["repeat", "chat"], Needs(seed=1))).values()) == {()}


# --- a whole measurement -----------------------------------------------------------------------------------


def probed(machine: Machine, **settings: Any) -> StepRecord:
    session = LabSession(machine)
    step = Step("commit", DraftCommit(**settings))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    record, _ = runner.judge(step, held.evidence, held.broken, lambda _host, _step, key: key)
    return record


def facts(record: StepRecord, kind: type[Any]) -> list[Any]:
    return [fact for fact in record.facts if isinstance(fact, kind)]


def test_both_ways_of_thinking_at_every_length() -> None:
    record = probed(hosts.healthy(), arms="chat", contexts="256,1k", steps=16, prompts=2, seed=3)
    assert record.reasons == ()
    points = facts(record, CommitPoint)
    measured = {(point.arm, point.context_tokens) for point in points if point.purpose == "point"}
    assert measured == {(arm, context) for arm in ("chat thinking", "chat plain") for context in (256, 1024)}
    assert {(point.context_tokens, point.prompt_tokens) for point in points} == {(256, 256), (1024, 1024)}
    (setup,) = facts(record, CommitSetup)
    assert setup.arms == ("chat thinking", "chat plain")
    assert {plan.arm for plan in setup.points} == {"chat thinking", "chat plain", "controls"}
    assert [name for name, _ in setup.texts if name.startswith("chat")] == [f"chat-{n}" for n in range(1, 5)]
    assert all(request.error == "" for request in facts(record, CommitRequest))


def test_prompts_are_turns_of_the_template_around_nonce_filler_and_question() -> None:
    session = LabSession(hosts.healthy())
    step = Step("commit", DraftCommit(arms="chat", contexts="512", steps=16, prompts=1, seed=3))
    held = runner.collect(step, session.host, session, SilentWriter(), lambda *_: None)
    results = {result.key: result for result in held.evidence.results if isinstance(result, HttpResult)}
    chats = {
        label: next(
            json.loads(result.question.body)["input_ids"]
            for key, result in results.items()
            if f"{label}-512-point" in key
        )
        for label in ("chat-thinking", "chat-plain")
    }
    for label, prompt in chats.items():
        told = json.loads(results[f"{label}-amber"].text)["tokens"]
        ends = json.loads(results[f"{label}-violet"].text)["tokens"]
        head = next(at for at, (a, b) in enumerate(zip(told, ends, strict=False)) if a != b)
        assert head > 0
        assert len(prompt) == 512
        assert prompt[:head] == told[:head]
        # `amber` is one token of the lab's: what follows it is the template's tail.
        assert prompt[-len(told[head + 1 :]) :] == told[head + 1 :]
    assert chats["chat-thinking"] != chats["chat-plain"]


def test_a_plan_shows_what_a_chat_may_cost_at_most() -> None:
    record = probed(hosts.healthy(), arms="chat", contexts="1k", plan=True)
    (setup,) = facts(record, CommitSetup)
    assert [plan.arm for plan in setup.points if plan.arm != "controls"] == [
        "chat", "chat thinking", "chat plain",
    ]  # fmt: skip
    assert record.reasons == ()


def test_a_url_where_nothing_listens_is_said_to_be_one() -> None:
    record = probed(hosts.healthy(), arms="repeat", url="http://127.0.0.1:1")
    (reason,) = record.reasons
    assert "nothing answers at http://127.0.0.1:1 (connection refused)" in reason
    assert "engines known" not in reason
