"""What a commit probe planned, sent and measured.

Words (DOMAIN's, and the field's): a *verify step* is one forward pass of the target over a draft block; it *accepts*
k of the K tokens that were *drafted* and commits k + 1, the *bonus token* included. The *ceiling* of a step's commit
is K + 1. Counts of accepted tokens never include the bonus; commit lengths always do.
"""

from __future__ import annotations

from dataclasses import dataclass

from ddprobe.model import Fact

# --- what was to be done -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """A length in tokens at which something changes by configuration: where an edge would be explained."""

    tokens: int
    name: str
    """In words, with its place: `drafter sliding_window`, `drafter max_model_len (--speculative-config)`."""
    kind: str
    """The verdict's kind an edge there stands for: `rope_position`, `sliding_window_kv`, `chunk_boundary`, …"""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """One arm at one context: what would be, or was, sent for it."""

    arm: str
    context_tokens: int
    prompts: int
    prompt_tokens: int
    """Of all its requests together."""
    prefill_tokens: int
    """Those of them that no earlier prompt of the plan shares: what the server computes if its prefix cache works."""
    output_tokens: int
    """At most, of all its requests together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSetup(Fact):
    """The server that is probed, what it says of its speculation, and the plan."""

    engine: str
    base: str
    server: str = ""
    """The `name` of the process; empty when only its url is known."""
    version: str = ""
    model: str = ""
    speculating: bool | None = None
    """What the server says; None when it does not say."""
    method: str = ""
    """As the engine calls it: `DFLASH`, `NGRAM`, `draft-simple`, `draft_model`."""
    drafter: str = ""
    """`model` (a neural drafter), `lookup` (n-gram, prompt lookup: repeated text is trivial to it), or empty: unknown."""
    draft_tokens: int | None = None
    """K: tokens drafted per verify step, at most."""
    ceiling: int | None = None
    """Most tokens that one step can commit."""
    window: int | None = None
    """The drafter's sliding window in tokens, where its configuration has one."""
    vocabulary: int | None = None
    """Ids at or above it must never be sent: they end the server."""
    context_limit: int | None = None
    """Prompt and output together, per request."""
    kv_tokens: int | None = None
    """Tokens that the server's KV cache holds in all."""
    tree: bool = False
    """The drafter proposes a tree, not a chain."""
    limits: tuple[Limit, ...] = ()
    contexts: tuple[int, ...] = ()
    arms: tuple[str, ...] = ()
    seed: int = 0
    steps_asked: int = 64
    prompts_asked: int = 4
    cold: bool = False
    """Every request came with a prefix of its own, so that the server's prefix cache could not serve it."""
    points: tuple[PlannedPoint, ...] = ()
    seconds: float | None = None
    """What the plan will take, estimated; None where nothing tells the server's speed."""
    left_out: tuple[str, ...] = ()
    """Points that were not sent, each with its reason."""
    texts: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of each text that prompts are made of."""
    planned_only: bool = False
    baseline: tuple[tuple[int, float], ...] = ()
    """(context in tokens, milliseconds per token without speculation), from an earlier report."""
    purpose: str = "commit"
    """`commit`; `step-time`; `plain`: a server without speculation, measured beside the one of `step-time`."""


# --- what was measured -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one source says of the speculation in one request. None is "it does not say", never 0."""

    origin: str
    """`meta_info`, `meta_info histogram`, `stream`, `timings`, `/metrics`, `usage`, …"""
    steps: int | None = None
    """Verify steps that had a draft."""
    accepted: int | None = None
    """Drafted tokens that were right, in all; no bonus token."""
    drafted: int | None = None
    histogram: tuple[int, ...] | None = None
    """Steps by number of accepted tokens: index 0 is "none was right"."""
    reported_commit: float | None = None
    """The mean that the source itself states, bonus included, as it stands there."""
    reported_rate: float | None = None
    """The accept rate that the source itself states."""
    last_step_whole: bool | None = None
    """Whether the last step counts in full here although the output was cut (True), or as cut (False)."""

    @property
    def commit(self) -> float | None:
        """1 + accepted / steps; None without steps: "nothing was drafted" is no 1.0."""
        if not self.steps or self.accepted is None:
            return None
        return 1 + self.accepted / self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest(Fact):
    """One request, in the neutral shape that AIPerf's acceptance record has."""

    key: str
    """Of its answer in the evidence."""
    purpose: str
    """`point`, `warm-up`, `cold`, `cached` (the same prompt again), `again` (the first point, once more at the end);
    `step-time`, `step-time again`, `plain`: see `CommitPoint`."""
    arm: str
    context_tokens: int
    """As asked for; 0 for `verbatim`."""
    prompt: int
    """Which of the point's prompts."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    """As the server counts: the first one comes from the prefill."""
    max_tokens: int = 0
    finish: str = ""
    num_spec_steps: int | None = None
    """Verify steps with a draft; the last one left out where it was cut and no source counts it whole."""
    undrafted_steps: int | None = None
    """Decode steps without a draft: one token each."""
    num_accepted_draft_tokens: int | None = None
    num_draft_tokens: int | None = None
    acceptance_histogram: tuple[int, ...] | None = None
    """Steps by accepted tokens (index), over the same steps as `num_spec_steps`."""
    step_commits: tuple[int, ...] = ()
    """Tokens committed by each decode step in order, undrafted steps included. Of a last step that the end of the output
    cut, what it would have committed where a source counts it whole; else it is left out. Empty: unknown."""
    step_ms: tuple[float, ...] = ()
    """Milliseconds of each of these steps; empty when arrival times are not known."""
    merged_chunks: int = 0
    """Pieces of the stream that held more than one step: their times say less."""
    origin: str = ""
    """The source these counts are from."""
    accounts: tuple[Account, ...] = ()
    """Every source that said something."""
    disagreements: tuple[str, ...] = ()
    """Sources that should agree and do not, in words with both numbers."""
    first_token_ms: float | None = None
    seconds: float = 0.0
    copied: float | None = None
    """Share of the output that follows the text it should copy; None where nothing is to be copied."""
    loop: str = ""
    """In words, how the output goes in a circle (`8 tokens, 14 times`); empty when it does not, or is to copy."""
    output_hash: str = ""
    """SHA-256 of the output's token ids (or text), the first 16 digits."""
    notes: tuple[str, ...] = ()
    """What a person should know of the counts: a source that was left out, and why."""
    error: str = ""
    """Why there is no measurement; empty when there is one."""

    @property
    def mean_acceptance_length(self) -> float | None:
        """Mean commit of the steps with a draft: 1 + accepted / steps."""
        if not self.num_spec_steps or self.num_accepted_draft_tokens is None:
            return None
        return 1 + self.num_accepted_draft_tokens / self.num_spec_steps

    @property
    def draft_acceptance_rate(self) -> float | None:
        if not self.num_draft_tokens or self.num_accepted_draft_tokens is None:
            return None
        return self.num_accepted_draft_tokens / self.num_draft_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPoint(Fact):
    """One arm at one context: its requests taken together."""

    arm: str
    context_tokens: int
    purpose: str = "point"
    """`point`; `again`: the first point measured once more at the end; `cached`: of a prompt that the prefix cache served,
    beside the same one cold. `step-time`: of a ladder sent for its times; `step-time again`: a few of its contexts once
    more at the end; `plain`: the same of a server without speculation."""
    base: str = ""
    """Where the server listens that it was measured on; empty where nobody says."""
    requests: int = 0
    failed: int = 0
    """Requests that gave no measurement."""
    prompt_tokens: int | None = None
    """Of its longest prompt, as the server counted."""
    cached_tokens: int | None = None
    """Mean over its requests."""
    steps: int = 0
    """Decode steps measured: with and without a draft. 0 beside a mean: nobody says how many."""
    drafted_steps: int | None = None
    """Those of them with a draft; None where that is not known."""
    commit_mean: float | None = None
    """Tokens committed per decode step, over all steps."""
    commit_low: float | None = None
    commit_high: float | None = None
    """Ends of the 95 % interval, by bootstrap over requests, then over blocks of steps."""
    drafted_commit_mean: float | None = None
    """Tokens committed per step that had a draft; None when nothing was drafted or it is not known."""
    ceiling: int | None = None
    share_of_ceiling: float | None = None
    """(mean - 1) / (ceiling - 1): 0 is no gain, 1 is every draft right."""
    saturated: bool = False
    """Every step, the first aside, reached the ceiling: the point only proves "at least"."""
    accept_rate: float | None = None
    histogram: tuple[int, ...] | None = None
    per_position: tuple[float, ...] | None = None
    """Share of drafted steps in which at least the first j drafts were right; entry 0 is j = 1."""
    conditional: tuple[float | None, ...] | None = None
    """The same given that the first j - 1 were right; None where that never happened."""
    step_ms: float | None = None
    """Median over steps, the first two of each request left out; their mean where steps arrived in bursts (no spread)."""
    step_ms_low: float | None = None
    step_ms_high: float | None = None
    """10th and 90th percentile."""
    step_ms_from: float | None = None
    step_ms_to: float | None = None
    """Ends of the 95 % interval of `step_ms`; None where too few steps were timed for one."""
    timed_steps: int = 0
    timed_context: float | None = None
    """Tokens before the draft, prompt and output together, mean over the timed steps: what their attention read."""
    first_token_ms: float | None = None
    """From the request to its first token, of the request that had the most to compute."""
    prefill_tokens: int | None = None
    """Tokens of that request's prompt that no cache served."""
    prefill_tok_s: float | None = None
    """These per second until the first token; None where a cache left too few to tell."""
    tok_s: float | None = None
    """Tokens per second while decoding: mean commit over mean step time."""
    copied: float | None = None
    loops: int = 0
    """Requests whose output went in a circle although it should not."""
    origin: str = ""
    """Where the counts come from; several sources joined by " + "."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCheck(Fact):
    """A control that the probe ran on itself or on the server."""

    name: str
    """`cold-cached`, `same-prompt`, `first-again`, `step-time-again`, `prompt-length`, `sources`."""
    agrees: bool | None
    """None: it could not be told."""
    text: str
    """In one sentence, with both numbers and their samples."""
    arm: str = ""
    context_tokens: int = 0
    first: float | None = None
    second: float | None = None
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Fact):
    """A number about speculation that somebody states (the server's lifetime mean, a gauge, a log line)."""

    what: str
    """`accept length`, `accept rate`, `accepted depth`, `commit length`, `throughput`; `accepted per step` where nobody
    says whether the bonus token counts."""
    value: float
    origin: str
    """`/server_info avg_spec_accept_length`, `decode log`, …"""
    samples: int | None = None
    """Verify steps behind it, where known."""
    window: str = ""
    """`lifetime`, `last log window`, `during the probe`."""
    run: str = ""
    """What tells one run from another (a document, a build): only figures of one run should agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationGain(Fact):
    """What speculation makes of the speed at one length, against the same server without it."""

    arm: str
    context_tokens: int
    plain_ms: float
    """Milliseconds per token without speculation: measured at this length, or between two others."""
    break_even: float
    """Tokens that a step must commit to be as fast: step time over `plain_ms`."""
    break_even_low: float | None = None
    break_even_high: float | None = None
    commit_mean: float | None = None
    gain: float | None = None
    """Speed with speculation over speed without: commit over `break_even`. Below 1 it loses."""
    gain_low: float | None = None
    gain_high: float | None = None
    """Ends as far out as the 95 % intervals of all that goes into it allow together; rather too wide than too narrow."""
    base: str = ""
    """Where the server without speculation listens; empty for an earlier report's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSpeed(Fact):
    """How fast the server is without speculation, measured in a separate run."""

    context_tokens: int
    tok_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpeed(Fact):
    """Tokens per second with so many requests at once, with speculation and without. Of one request or of all, in both alike."""

    running: int
    tok_s: float | None = None
    plain_tok_s: float | None = None
    """None: measured elsewhere, or not at all."""
    context_tokens: int = 0
    """0: nobody says."""
    text: str = ""
    """What tells this series from another: a drafter's name, a kind of text."""
