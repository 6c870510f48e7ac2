"""What the kinds mean that stand in brackets behind a verdict's name: `long_context_bug (rope_position)`."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, Mapping[str, str]] = {
    "text_difficulty": {
        "degenerate_output": "the best figures are of output that goes in a circle",
        "template_mode": "the mode of the chat template (thinking or not) decides how hard the text is",
    },
    "long_context_bug": {
        "rope_position": "a limit on positions: RoPE, YaRN or max_position_embeddings ends there",
        "draft_length_limit": "the drafter was given a context length of its own that ends there",
        "sliding_window_kv": "the edge lies at the drafter's sliding window: its KV is kept or read wrongly beyond it",
        "window_ignored": "the drafter's window is not applied, so it sees distances that it was never trained on",
        "chunk_boundary": "the edge lies where a chunk of the prefill ends",
        "far_kv": "what stands near is drafted and what stands far back is not",
    },
    "long_context_decay": {
        "steep": "it keeps less than drafters trained on short text do",
        "window_by_design": "the drafter, or a launch argument, keeps nothing beyond a window",
    },
    "drafter_dead": {
        "first_position": "not even the first token of a draft is right",
        "after_first": "the first token of a draft is right now and then, and no later one ever",
        "miswired": "it is alive and far below what it should reach, and its configuration has an error",
    },
    "not_speculating": {
        "off": "no speculation is asked for",
        "never_drafts": "speculation is asked for, and no draft is made",
    },
    "metric_inconsistency": {
        "commit_path": "tokens are accepted and never come out",
        "metric": "at least one figure is not what its name says",
        "rate_formula": "one name stands for different formulas",
        "worker_reporting": "what the drafter's worker reports does not fit what a step commits",
    },
    "simulated_acceptance": {
        "switch": "a variable or argument that forges acceptance is set",
        "histogram": "texts that have nothing in common give the same few accept lengths",
    },
    "cache_state_bug": {
        "draft_kv_lost": "a prompt from the prefix cache is drafted worse: the drafter's state is missing",
        "draft_replayed": "a prompt from the prefix cache is drafted better: something of the first request is replayed",
    },
    "attention_kernel_bottleneck": {
        "serial_prefix": "verify walks the whole prefix serially: the kernel that does so is named",
    },
    "launch_or_cpu_bound": {
        "graphs_missing": "steps without CUDA graphs take much longer than those from graphs",
        "beyond_a_length": "beyond a length another path is taken, such as one without graphs",
        "waiting": "the GPU waits while a step is prepared",
    },
    "gpu_state": {
        "throttled": "a card's clock was held down",
        "clock_drop": "the clock fell while it was measured",
        "slower": "the same point took longer the second time",
        "faster": "the same point took less time the second time",
    },
    "spec_net_loss": {
        "beyond_a_length": "it loses beyond a context length only",
    },
    "startup_incompatible": {
        "out_of_memory": "memory ran out while it started",
        "context_length": "the drafter's own length ends before the one that is served",
        "quantization": "weights are read with a quantisation that they do not have",
        "attention_backend": "an attention backend does not take the drafter, or the tree",
        "vocabulary": "the vocabularies, or what maps between them, do not go together",
        "shape": "weights and configuration have different shapes",
        "arguments": "arguments contradict each other, or one is missing",
        "other": "another exception",
    },
    "inconclusive": {
        "degenerate_output": "the output goes in a circle, which anything drafts well",
        "lookup": "the drafter looks repeated text up, so easy text says nothing of it",
        "no_measurement": "nothing says how many tokens a step commits",
        "nothing_recognised": "nothing that was given is evidence that is known",
        "nothing_to_look_up": "a drafter that looks text up found nothing to look up",
        "prompt_length": "prompts did not have the length that was asked for",
        "state_effect": "the first point came out otherwise at the end",
        "times_only": "step times were measured, and whether drafts are right was not asked",
        "weak_drafter": "repeated text is drafted, and less than it should be",
    },
}  # fmt: skip


def verdicts_of(kind: str) -> tuple[str, ...]:
    """The verdicts that have such a kind."""
    return tuple(name for name, kinds in KINDS.items() if kind in kinds)
