"""Start-up facts, warnings and ends of servers, from the lines that the engines write."""

from __future__ import annotations

import random

import pytest

from ddprobe import lints
from ddprobe.evidence import startup
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import LogEvent, ModelConfig, ServerArgs
from ddprobe.model import Cite, Outcome
from ddprobe.parsing import startup_lines

LAUNCH = "[2026-11-30 15:47:10] server_args=ServerArgs(model_path='/m', speculative_algorithm='DFLASH')"
READY = "[2026-11-30 15:48:19] The server is fired up and ready to roll!"
TRACE = (
    "[2026-11-30 15:38:46 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/srt/managers/scheduler.py", line 3, in run\n'
    "    raise ValueError(\n"
    "ValueError: DFLASH target_hidden feature dim mismatch. Expected shape [N, 128]\n"
    "\n"
    "[2026-11-30 15:38:46] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
)


def events(*lines: str) -> list[LogEvent]:
    document = of_bytes("log", "\n".join(lines).encode())
    found = startup.recognise(document, document.sample())
    return [fact for fact in found.facts if isinstance(fact, LogEvent)] if found else []


def values(event: LogEvent) -> dict[str, str]:
    return dict(event.values)


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        (
            "[2026-11-30 15:48:14] Initialized DFLASH draft runner. attention_backend=intel_amx, model=DFlashDraftModel, "
            "block_size=4, draft_window_size=None, compact_cache=False",
            "draft_runner",
            {"algorithm": "DFLASH", "attention_backend": "intel_amx", "block_size": "4", "draft_window_size": "None"},
        ),
        ("Initialized DDTree worker. block_size=8, tree_budget=32, max_tree_nodes=33", "draft_runner", {"tree_budget": "32"}),
        (
            "DFLASH draft runner ready. mask_token=<|MASK|>, mask_token_id=259, mask_token_id_override=259, noise_embed_scale=1.0",
            "draft_ready",
            {"mask_token": "<|MASK|>", "mask_token_id": "259"},
        ),
        (
            "Merged trained mask embedding into target model (mask_token_id=163838, source=/d/mask_embedding.pt)",
            "mask_embedding_merged",
            {"mask_token_id": "163838"},
        ),
        (
            "DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config block_size=8.",
            "block_mismatch",
            {"served": "16", "trained": "8"},
        ),
        (
            "Failed to infer DFLASH block_size from draft model config; defaulting speculative_num_draft_tokens to 16. Error: x",
            "block_assumed",
            {},
        ),
        (
            "Draft config num_target_layers=36 differs from runtime target num_hidden_layers=64; selecting capture layers",
            "target_layers_differ",
            {"trained": "36", "served": "64"},
        ),
        ("Overriding the draft model's max_position_embeddings to 262144.", "length_overridden", {"length": "262144"}),
        (
            "DFLASH draft worker only supports attention_backend in ['flashinfer', 'fa3'] for now, but got 'intel_amx'. Falling "
            "back to 'flashinfer'.",
            "fallback_backend",
            {"asked": "intel_amx", "taken": "flashinfer"},
        ),
        (
            "--speculative-draft-window-size has no effect with speculative_algorithm=NGRAM (honored by DFLASH)",
            "window_ignored",
            {"algorithm": "NGRAM"},
        ),
        (
            "Disable DFLASH draft cuda graph because only 0.30 GB GPU memory is available",
            "graph_off",
            {"what": "DFLASH draft"},
        ),
        ("Cuda graph is disabled because of using torch native attention backend", "graph_off", {}),
        (
            "WARNING 11-30 15:37:25 [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup.",
            "graph_off",
            {},
        ),
        (
            "DFLASH non-greedy verification is unavailable on this build/device; falling back to greedy argmax verification.",
            "greedy_fallback",
            {},
        ),
        ("DFLASH fused KV materialization disabled: q_norm missing", "slow_path", {"why": "q_norm missing"}),
        (
            "rope_scaling (type=yarn) missing key 'beta_fast', defaulting to 32. ",
            "rope_key_missing",
            {"type": "yarn", "key": "beta_fast"},
        ),
        ("Parameter model.mtp.layers.0.fc.weight not found in params_dict", "weights_skipped", {"draft": "yes"}),
        (
            "Eagle3 MLA: skipping unexpected weight model.layers.3.q.weight",
            "weights_skipped",
            {"tensor": "model.layers.3.q.weight", "draft": "unknown"},
        ),
        (
            "Some weights are not initialized from checkpoints: {'model.layers.0.eh_proj.weight'}",
            "weights_uninitialised",
            {"draft": "yes"},
        ),
        (
            "model has unused tensor blk.64.nextn.eh_proj.weight (size = 1 bytes) -- ignoring",
            "weights_unused",
            {"tensor": "blk.64.nextn.eh_proj.weight"},
        ),
        (
            "Using FP8 KV cache but no scaling factors provided. Defaulting scaling factors of 1.0.",
            "kv_scales_missing",
            {},
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out_of_memory", {}),
        ("[1234.5] NVRM: Xid (PCI:0000:1b:00): 13, Graphics Exception", "xid", {"xid": "13"}),
        ("W the speculative decoding is not supported by this context", "speculation_off", {}),
    ],
)  # fmt: skip
def test_each_line_that_matters(line: str, kind: str, said: dict[str, str]) -> None:
    found = [event for event in events(LAUNCH, line) if event.kind == kind]
    assert found, events(LAUNCH, line)
    assert said.items() <= values(found[0]).items()
    assert found[0].line == 2
    assert found[0].source == (Cite("log", "line 2"),)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-30 15:35:08] Decode batch, #running-req: 1, #token: 36, accept len: 1.75, cuda graph: False",
        "[2026-11-30 15:48:15] Disable prefill CUDA graph because cuda_graph_config resolved prefill.backend='disabled'",
        "Piecewise cuda graph is disabled for MoE runner backend",
        "(Worker pid=7) WARNING min_p and logit_bias parameters won't work with speculative decoding.",
        "WARNING [vllm.py:1605] Async scheduling not supported with ngram-based speculative decoding and will be disabled.",
        "Ignore import error when loading sglang.srt.models.inkling: No module named 'cutlass'",
        'INFO:     127.0.0.1:1 - "GET /error HTTP/1.1" 404 Not Found',
        "Using default HuggingFace chat template with detected content format: string",
        "Average draft acceptance is 9%. Is the drafter broken?",
    ],
)
def test_lines_that_say_nothing_of_a_start(line: str) -> None:
    assert events(line) == []


def test_weights_skipped_while_the_drafter_is_loaded_are_its_own() -> None:
    found = events(
        LAUNCH,
        "[2026-11-30 15:48:14 TP0] Load weight begin. avail mem=20.97 GB",
        "[2026-11-30 15:48:14 TP1] Load weight begin. avail mem=20.97 GB",
        "[2026-11-30 15:48:14 TP0] Parameter model.layers.0.a.weight not found in params_dict",
        "[2026-11-30 15:48:15 TP0] Load weight begin. avail mem=20.97 GB",
        "[2026-11-30 15:48:15 TP0] Parameter layers.0.b.weight not found in params_dict",
    )
    skipped = [values(event) for event in found if event.kind == "weights_skipped"]
    assert skipped == [
        {"tensor": "model.layers.0.a.weight", "draft": "unknown"},
        {"tensor": "layers.0.b.weight", "draft": "yes"},
    ]


def test_lines_of_one_kind_are_counted_and_few_are_kept() -> None:
    found = events(
        *(f"Parameter visual.layer{number}.weight not found in params_dict" for number in range(500))
    )
    assert len(found) == startup.MOST_OF_A_KIND
    assert sum(event.count for event in found) == 500
    assert found[0].text.startswith("Parameter visual.layer0.weight")


# --- ends -------------------------------------------------------------------------------------------------


def test_a_crash_before_the_server_was_up() -> None:
    found = events(LAUNCH, *TRACE.splitlines())
    crash = next(event for event in found if event.kind == "crash")
    assert crash.text == "ValueError: DFLASH target_hidden feature dim mismatch. Expected shape [N, 128]"
    assert (values(crash)["phase"], values(crash)["exception"], crash.line) == ("start", "ValueError", 5)
    assert [values(event)["phase"] for event in found if event.kind == "died"] == ["start"]


def test_sglang_is_not_up_before_its_first_request_was_answered() -> None:
    started = "[2026-11-30 15:48:15] INFO:     Application startup complete."
    before = events(LAUNCH, started, *TRACE.splitlines())
    after = events(LAUNCH, started, READY, *TRACE.splitlines())
    assert {values(event)["phase"] for event in before if event.kind == "crash"} == {"start"}
    assert {values(event)["phase"] for event in after if event.kind == "crash"} == {"serving"}


def test_vllm_is_up_when_its_application_is() -> None:
    found = events(
        "(APIServer pid=1) INFO 11-30 15:37:25 [api_utils.py:286] non-default args: {'model_tag': '/m'}",
        "(APIServer pid=1) INFO:     Application startup complete.",
        "(EngineCore pid=2) ERROR 11-30 15:37:53 [core.py:1] EngineCore encountered a fatal error.",
        "(EngineCore pid=2) ERROR 11-30 15:37:53 [core.py:1] Traceback (most recent call last):",
        "(EngineCore pid=2) ERROR 11-30 15:37:53 [core.py:1]   File \"x.py\", line 1, in f",
        "(EngineCore pid=2) ERROR 11-30 15:37:53 [core.py:1] AssertionError: Synthetic acceptance not supported",
        "(APIServer pid=1) ERROR 11-30 15:37:53 [async_llm.py:9] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
        "encountered an issue. See stack trace (above) for the root cause.",
    )  # fmt: skip
    crashes = [
        (values(e)["exception"], values(e)["phase"], "secondary" in values(e))
        for e in found
        if e.kind == "crash"
    ]
    assert crashes == [("AssertionError", "serving", False), ("EngineDeadError", "serving", True)]


def test_a_request_that_failed_is_no_crash() -> None:
    found = events(
        LAUNCH,
        READY,
        "Traceback (most recent call last):",
        "  File x",
        "TypeError: Unexpected keyword argument 'n'",
    )
    assert [event.kind for event in found] == ["launched", "ready", "request_error"]


def test_a_second_start_in_one_log_begins_anew() -> None:
    found = events(LAUNCH, READY, LAUNCH, *TRACE.splitlines())
    ready = next(event for event in found if event.kind == "ready")
    crash = next(event for event in found if event.kind == "crash")
    assert values(ready)["last"] == "2"
    assert values(crash)["phase"] == "start"


ANSWERED = '[2026-11-30 15:49:00] INFO:     127.0.0.1:4 - "POST /generate HTTP/1.1" 200 OK'
DECODES = "[2026-11-30 15:49:00 TP0] Decode batch, #running-req: 1, accept len: 2.00"
FAILS = (
    "Traceback (most recent call last):",
    '  File "x.py", line 3, in f',
    "ValueError: a tokenizer that is not there",
)


def crashes(*lines: str) -> list[tuple[str, str]]:
    """Kind and phase of what an exception is taken for."""
    kinds = ("crash", "request_error", "handled_error")
    return [(event.kind, values(event)["phase"]) for event in events(*lines) if event.kind in kinds]


@pytest.mark.parametrize("signs", [[ANSWERED] * 3, [DECODES] * 17, [ANSWERED] + [DECODES] * 9])
def test_a_log_without_the_line_that_it_is_up_is_up_when_it_serves(signs: list[str]) -> None:
    """Cut in its middle, or filtered: what was answered and decoded is more than a warm-up."""
    assert crashes(LAUNCH, *signs, *FAILS) == [("request_error", "serving")]
    assert crashes(LAUNCH, *signs[:-1], *FAILS) == [("crash", "start")]


def test_a_log_cut_at_its_beginning_is_up_when_it_decodes() -> None:
    assert crashes(DECODES, *FAILS) == [("request_error", "serving")]
    assert crashes(*FAILS) == [("crash", "unknown")]


def test_signs_of_serving_are_those_since_the_last_start() -> None:
    assert crashes(*[ANSWERED] * 2, LAUNCH, ANSWERED, *FAILS) == [("crash", "start")]


def test_who_goes_on_after_an_exception_did_not_die_of_it() -> None:
    loads = "[2026-11-30 15:47:20 TP0] Load weight begin. avail mem=1.00 GB"
    assert crashes(LAUNCH, *FAILS, loads) == [("handled_error", "start")]
    assert crashes(LAUNCH, loads, *FAILS) == [("crash", "start")]


def test_who_is_started_again_after_an_exception_did_die_of_it() -> None:
    loads = "[2026-11-30 15:47:20 TP0] Load weight begin. avail mem=1.00 GB"
    assert crashes(LAUNCH, *FAILS, LAUNCH, loads) == [("crash", "start")]


def test_an_exception_is_not_called_a_death_that_nobody_saw() -> None:
    def told(*lines: str) -> tuple[Outcome, str]:
        (found,) = (finding for finding in lints.judge(events(*lines)) if finding.id == "SE01")
        return found.outcome, found.summary

    outcome, summary = told(*FAILS)
    assert outcome is Outcome.WARN
    assert "neither how the server started nor how it ended" in summary
    outcome, summary = told(LAUNCH, *FAILS)
    assert outcome is Outcome.FAIL
    assert summary.startswith(
        "the log has an exception and no sign that the server went on, at its start: ValueError"
    )
    assert told(LAUNCH, *TRACE.splitlines())[1].startswith("the server died at its start: ")


# --- lints ------------------------------------------------------------------------------------------------


def outcomes(*lines: str) -> dict[str, Outcome]:
    return {finding.id: finding.outcome for finding in lints.judge(events(*lines))}


def test_a_whole_quiet_start_is_content() -> None:
    found = outcomes(LAUNCH, READY)
    assert set(found.values()) == {Outcome.PASS}
    assert {"ST01", "ST02", "ST05", "SE01", "SE02"} <= set(found)


def test_lints_from_lines_to_findings() -> None:
    found = outcomes(
        LAUNCH,
        "DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config block_size=8.",
        "Parameter model.mtp.fc.weight not found in params_dict",
        "Overriding the draft model's max_position_embeddings to 262144.",
        READY,
    )
    faults = {id for id, outcome in found.items() if outcome is Outcome.FAIL}
    assert faults == {"DC11", "DC45", "DC35"}


def test_the_drafters_length_is_the_second_that_vllm_tells() -> None:
    line = "(APIServer pid=1) INFO 09-22 08:00:05 [model.py:1684] Using max model len {}"
    short = lints.judge(events(line.format(1048576), line.format(262144)))
    assert [(f.id, f.outcome) for f in short if f.id == "DC35"] == [("DC35", Outcome.FAIL)]
    assert "262144 positions and 1048576 are served" in short[0].summary
    assert "DC35" not in outcomes(line.format(32768), line.format(40960))
    assert "DC35" not in outcomes(line.format(32768), line.format(32768))


LLAMA = "0.00.012.809 I srv  llama_server: initializing ..."
DRAFT_BEGINS = "0.00.169.877 I common_speculative_init_result: loading draft model '/d.gguf'"


def llama_start(target: tuple[int, int], draft: tuple[int, int], slot: str) -> tuple[str, ...]:
    """What llama-server writes: of each model its context and how long it was trained, then what a slot has."""

    def context(length: int, trained: int) -> str:
        word = ("<", "the full capacity of the model will not be utilized")
        word = word if length < trained else (">", "possible training context overflow")
        return f"0.00.100.000 W llama_context: n_ctx_seq ({length}) {word[0]} n_ctx_train ({trained}) -- {word[1]}"

    told = [context(*pair) for pair in (target, draft) if pair[0] != pair[1]]
    told.insert(len(told) - (draft[0] != draft[1]), DRAFT_BEGINS)
    return (LLAMA, *told, slot, "0.00.264.130 I srv  llama_server: listening on http://127.0.0.1:8301")


SLOT = "0.00.256.073 I srv    load_model: initializing, n_slots = {}, n_ctx_slot = {}, kv_unified = 'false'"


def test_llama_cpp_says_of_each_model_how_long_it_was_trained() -> None:
    found = events(*llama_start((200000, 262144), (200000, 131072), SLOT.format(1, 200000)))
    told = [(event.kind, values(event)) for event in found if event.kind in ("context", "slot_context")]
    assert told == [
        ("context", {"length": "200000", "trained": "262144", "draft": "no"}),
        ("context", {"length": "200000", "trained": "131072", "draft": "yes"}),
        ("slot_context", {"slots": "1", "length": "200000"}),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("llama_init_from_model: n_ctx_per_seq (4096) < n_ctx_train (32768) -- the full capacity of the model will not be utilized",
         "context", {"length": "4096", "trained": "32768", "draft": "no"}),
        ("W srv    load_model: the slot context (49152) exceeds the training context of the model (40960) - capping",
         "context_capped", {"asked": "49152", "trained": "40960"}),
        ("slot   load_model: id  0 | task -1 | new slot, n_ctx = 40960", "slot_context", {"length": "40960"}),
        ("slot         init: id  0 | task -1 | new slot n_ctx_slot = 4096", "slot_context", {"length": "4096"}),
        ("srv    load_model: initializing slots, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'",
         "slot_context", {"slots": "4", "length": "8192"}),
    ],
)  # fmt: skip
def test_contexts_in_every_release(line: str, kind: str, said: dict[str, str]) -> None:
    (event,) = events(line)
    assert (event.kind, values(event)) == (kind, said)


def test_the_batch_of_each_model_is_told() -> None:
    batch = "llama_context: n_batch       = {}"
    found = events(LLAMA, batch.format(2048), DRAFT_BEGINS, batch.format(512), SLOT.format(1, 4096))
    assert [values(event) for event in found if event.kind == "batch"] == [
        {"tokens": "2048", "draft": "no"},
        {"tokens": "512", "draft": "yes"},
    ]
    assert events(batch.format(2048)) == []


@pytest.mark.parametrize(
    ("draft", "slot", "found"),
    [
        pytest.param((200000, 131072), SLOT.format(1, 200000), (131072, 200000), id="shorter than what is served"),
        pytest.param((200000, 131072), SLOT.format(2, 131072), None, id="a slot has no more than it was trained for"),
        pytest.param((131073, 131072), SLOT.format(1, 131073), (131072, 131073), id="by one"),
        pytest.param((131072, 131072), SLOT.format(1, 131072), None, id="as long"),
        pytest.param((8192, 131072), SLOT.format(1, 8192), None, id="longer"),
        pytest.param((200000, 131072), "no slot is told", (131072, 200000), id="by its own context"),
    ],
)  # fmt: skip
def test_a_drafter_that_was_trained_shorter_than_what_llama_cpp_serves(
    draft: tuple[int, int], slot: str, found: tuple[int, int] | None
) -> None:
    told = lints.judge(events(*llama_start((draft[0], 262144), draft, slot)))
    dc35 = [finding for finding in told if finding.id == "DC35"]
    if found is None:
        assert dc35 == []
        return
    (finding,) = dc35
    assert finding.outcome is Outcome.WARN
    assert dict(finding.measured) == {"drafter": found[0], "served": found[1]}


def test_a_target_that_is_served_beyond_its_training_is_no_matter_of_the_drafter() -> None:
    told = lints.judge(events(*llama_start((200000, 131072), (200000, 262144), SLOT.format(1, 200000))))
    assert "DC35" not in {finding.id for finding in told}


@pytest.mark.parametrize(("slots", "outcome"), [(32768, Outcome.FAIL), (16384, Outcome.PASS)])
def test_what_a_slot_has_is_what_is_served(slots: int, outcome: Outcome) -> None:
    """Whatever `-c` asked for: a drafter's own length is held against the slot's."""
    drafter = ModelConfig(role="drafter", path="d", architectures=("LlamaForCausalLM",), max_position_embeddings=16384,
                          context_length=16384)  # fmt: skip
    args = ServerArgs(
        engine="llamacpp",
        origin="command line",
        values=(("speculative_draft_model_path", "/d.gguf"), ("context_length", 65536)),
    )
    found = [f for f in lints.judge([args, drafter, *events(LLAMA, SLOT.format(1, slots))]) if f.id == "DC35"]
    assert [finding.outcome for finding in found] == [outcome]


def test_what_a_log_shows_does_not_hide_the_fault_that_arguments_have() -> None:
    given = ServerArgs(
        engine="sglang",
        origin="command line",
        values=(("model_path", "/m"), ("speculative_algorithm", "DFLASH"), ("disable_cuda_graph", True)),
        source=(Cite("cmd"),),
    )
    found = [
        f for f in lints.judge([given, *events("Cuda graph is disabled because of x")]) if f.id == "SA09"
    ]
    assert [(f.outcome, f.subject) for f in found] == [(Outcome.FAIL, "launch")]


def test_mutated_logs_do_no_harm() -> None:
    chance = random.Random(7)
    whole = "\n".join(
        (LAUNCH, TRACE, READY, "Parameter a.b not found in params_dict", "NVRM: Xid (PCI:1): 13, x")
    )
    for _ in range(300):
        text = list(whole)
        for _ in range(chance.randrange(1, 40)):
            text[chance.randrange(len(text))] = chance.choice("\0\n'\"({[<>=:, x\x1b\ufffd")
        lints.judge(events("".join(text)))


def test_a_hostile_line_is_read_in_time() -> None:
    for line in (
        "draft worker only supports attention_backend " + "got 'a" * 50_000,
        "Disable decode cuda graph because" * 9000,
    ):
        startup_lines.read(line)
        startup_lines.exception(startup_lines.bare(line))
