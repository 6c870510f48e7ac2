"""The nouns: what is asked, what came back, what is concluded. Frozen, no I/O, compared by value."""

from __future__ import annotations

import abc
import enum
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ddprobe.blocks import Block
from ddprobe.errors import Unanswered

KIB = 1024
MIB = 1024 * KIB


class Outcome(enum.IntEnum):
    """How a finding turned out, in one order: no answer is worse than a warning."""

    SKIP = 0
    INFO = 1
    PASS = 2
    WARN = 3
    UNKNOWN = 4
    FAIL = 5

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def worst(cls, outcomes: Iterable[Outcome]) -> Outcome:
        """The highest of them; worst of nothing is *unknown*: silence is not a pass."""
        return max(outcomes, default=cls.UNKNOWN)


# --- hosts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container on the host that the server runs in."""

    runtime: str
    """`docker`, `podman` or `kubectl`."""
    name: str


LAB_TAG = "ddprobe-lab"
"""Of a host that is made up: a report with one among its hosts says that it is of a lab."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host, how to reach it, and what is known of it beforehand.

    Unset (None or empty) means "as ssh_config says" or "discover it", never a default that overrides either.
    """

    name: str
    address: str | None = None
    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    """A known_hosts file looked at in place of ssh_config's."""
    jump: str | None = None
    host_key: str = "strict"
    """`strict` or `accept-new`. A changed key is refused under both."""
    connect_timeout: float = 10.0
    command_timeout: float = 25.0
    transport: str = "ssh"
    """`ssh`, `openssh` or `local`."""
    container: Container | None = None
    engine: str | None = None
    url: str | None = None
    api_key_env: str | None = None
    package: str | None = None
    python: str | None = None
    drafter: str | None = None
    target: str | None = None
    log: str | None = None
    gpu_bandwidth: float | None = None
    tags: tuple[str, ...] = ()


# --- questions ---------------------------------------------------------------------------------------------


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


# --- answers -----------------------------------------------------------------------------------------------


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


# --- what is concluded -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cite:
    """Where a finding can be checked: an answer's key (a path within the report once stored) and a place in it."""

    artefact: str
    at: str = ""
    """Lines (`lines 3-9`) or a field (`$.rope_scaling.factor`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One judgement. `summary` holds the number and its limit in one sentence."""

    id: str
    outcome: Outcome
    subject: str
    summary: str
    cites: tuple[Cite, ...] = ()
    measured: tuple[tuple[str, str | int | float | bool | None], ...] = ()
    advice: str = ""
    """The exact flag or field to change, and how to undo it."""
    source: str = ""
    """Where the knowledge comes from."""
    host: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of what was asked got no whole answer. Becomes an *unknown* finding, and the step is incomplete."""

    subject: str
    reason: str
    cites: tuple[Cite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something known. Subclasses (`facts.py`) say what; `source` says from which answers."""

    source: tuple[Cite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the evidence supports (PRODUCT: names, kinds)."""

    name: str
    kind: str = ""
    confidence: str = "low"
    reasons: tuple[str, ...] = ()
    cites: tuple[Cite, ...] = ()
    ruled_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    host: str = ""

    @property
    def outcome(self) -> Outcome:
        """How it counts. A verdict of a later version that this one does not know is a failure."""
        return VERDICTS.get(self.name, Outcome.FAIL)


COLLECTED = "evidence"
"""The name of the host that files collected elsewhere are judged under: none that a command could go to."""

VERDICTS = {
    "healthy": Outcome.PASS,
    "text_difficulty": Outcome.INFO,
    "long_context_decay": Outcome.WARN,
    "gpu_state": Outcome.WARN,
    "not_speculating": Outcome.WARN,
    "spec_net_loss": Outcome.WARN,
    "inconclusive": Outcome.UNKNOWN,
    "long_context_bug": Outcome.FAIL,
    "drafter_dead": Outcome.FAIL,
    "metric_inconsistency": Outcome.FAIL,
    "simulated_acceptance": Outcome.FAIL,
    "verify_not_lossless": Outcome.FAIL,
    "cache_state_bug": Outcome.FAIL,
    "attention_kernel_bottleneck": Outcome.FAIL,
    "launch_or_cpu_bound": Outcome.FAIL,
    "startup_incompatible": Outcome.FAIL,
}
"""Every verdict there is, and how it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """An explanation that somebody would think of, and what the evidence says of it."""

    name: str
    text: str
    """What it says, in words."""
    status: str
    """`supported`, `refuted` or `untested`."""
    evidence: str = ""
    """What decides it, in a sentence."""
    cites: tuple[Cite, ...] = ()
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One hypothesis over all hosts that have a ledger: which of them support it, refute it, did not test it."""

    name: str
    text: str
    supported: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()


# --- probes ------------------------------------------------------------------------------------------------

Asked = Question | Begin | End | tuple[Question, ...]
Conversation = Generator[Asked, Any, None]
"""Yields a question, or a tuple of questions that travel together; is sent the answer, or a tuple of answers.

`Begin` and `End` stand around what a command runs beside.
"""


@dataclass(frozen=True, slots=True)
class Help:
    """One line about a probe's setting: `name: Annotated[int, Help("…")] = 1`."""

    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Of a text setting that holds several values separated by commas: a playbook may give them as a list."""


@dataclass(frozen=True, kw_only=True)
class Probe(abc.ABC):
    """A named, read-only question. Subclasses are frozen dataclasses; their fields are the settings.

    The module's docstring opens with the question and is the manual page; `name` comes from the module's path.
    """

    findings: ClassVar[dict[str, str]] = {}
    """Each finding id that this probe itself can give (lints aside), with a line on what it means."""
    measures: ClassVar[bool] = False
    """Whether it times the server: nothing else of ours may run on the host beside it."""
    outputs: ClassVar[dict[str, str]] = {}
    """What later steps of a playbook may take from this one, each with a line on what it is."""

    @classmethod
    def name(cls) -> str:
        """`source.grep` for ddprobe/probes/source/grep.py."""
        return ".".join(cls.__module__.split(".")[-2:])

    @classmethod
    def mistakes(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Settings that could never be asked, as (setting, what is wrong with it). `given`: those known so far."""
        yield from ()

    @classmethod
    def cost(cls, given: Mapping[str, Any]) -> str:
        """What it costs the server, in words; empty where it sends no prompt. `given`: settings, None: not known yet."""
        return ""

    @classmethod
    def output(cls, facts: Sequence[Fact], findings: Sequence[Finding]) -> Mapping[str, Any]:
        """Pure: a value for each of `outputs` that is known: numbers, texts, truths, or tuples of them."""
        return {}

    @abc.abstractmethod
    def collect(self, host: Host) -> Conversation:
        """Say what to ask, look at what came, ask on. Never touches a host itself."""

    @abc.abstractmethod
    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        """Pure: the transcript in; facts, findings and gaps out. May let `Unanswered` escape."""

    @abc.abstractmethod
    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        """Pure: what a person sees of this step on one host, as neutral blocks that each view draws its own way."""


@dataclass(frozen=True, slots=True)
class Step:
    """One probe of a run, under an id that names its evidence folder."""

    id: str
    probe: Probe


# --- the report --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a host was reached: part of the evidence."""

    transport: str
    address: str = ""
    user: str = ""
    port: int | None = None
    host_key: str = ""
    """`ssh-ed25519 SHA256:…`"""
    connect_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What a person should know of the road: noisy shell, curl in place of forwarding, what could not be honoured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """A host of a run, and how it went."""

    name: str
    connection: Connection | None = None
    error: str = ""
    """Why it could not be reached or refused us; empty when it was reached."""
    advice: str = ""
    survivors: int = 0
    """Processes of ours that the last look had to end. Anything but 0 is a failure of ddprobe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One answer as stored: the question in words, how it ended, and the files that hold its bytes."""

    key: str
    question: str
    kind: str
    """`command` or `http`."""
    files: tuple[tuple[str, str], ...]
    """(`stdout`, path within the report), …"""
    exit_code: int | None = None
    status: int | None = None
    started: float = 0.0
    seconds: float = 0.0
    size: int = 0
    truncated: bool = False
    timed_out: bool = False
    trouble: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step on one host: what was asked, what is known from it, how it ended."""

    id: str
    probe: str
    host: str
    status: str
    """`done`, `incomplete` (something asked got no whole answer), `interrupted`, `not_run`, `skipped` (not wanted here)."""
    settings: tuple[tuple[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it is not `done`."""
    started: float = 0.0
    seconds: float = 0.0
    artefacts: tuple[Artefact, ...] = ()
    facts: tuple[Fact, ...] = ()
    kept_from: str = ""
    """The report that it was taken over from; empty when this run asked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookRecord:
    """The playbook that a run carried out, and with what."""

    name: str
    about: str = ""
    file: str = ""
    digest: str = ""
    """SHA-256 of the file, in hex."""
    vars: tuple[tuple[str, Any], ...] = ()
    """As used: defaults and `--set`."""
    hypotheses: tuple[str, ...] = ()
    """Names of those that the report's ledger is to answer; all where it declares none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run, whole. Everything that can be derived (outcome, exit code) is, and is not stored beside its origin."""

    name: str
    version: str
    started: float
    seconds: float = 0.0
    lab: bool = False
    interrupted: bool = False
    playbook: PlaybookRecord | None = None
    hosts: tuple[HostRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    redactions: int = 0
    trouble: str = ""
    """Why the report's folder does not hold all of this; empty when it does."""

    @property
    def outcome(self) -> Outcome:
        """The worst finding or verdict. A step that got its whole answer and judges nothing (`read`) counts as *info*."""
        answered = [Outcome.INFO for step in self.steps if step.status == "done"]
        judged = [verdict.outcome for verdict in self.verdicts]
        return Outcome.worst([finding.outcome for finding in self.findings] + judged + answered)


def summed(hypotheses: Iterable[Hypothesis]) -> tuple[LedgerLine, ...]:
    """The ledgers of all hosts as one, in the order of the hypotheses."""
    lines: dict[str, dict[str, list[str]]] = {}
    texts: dict[str, str] = {}
    for one in hypotheses:
        texts.setdefault(one.name, one.text)
        found = lines.setdefault(one.name, {"supported": [], "refuted": [], "untested": []})
        found.get(one.status, found["untested"]).append(one.host)
    return tuple(
        LedgerLine(name=name, text=texts[name], **{status: tuple(hosts) for status, hosts in found.items()})
        for name, found in lines.items()
    )


EXPECTED = "EXPECT"
"""How the ids begin of findings that say whether a playbook's expectation was met."""
FAIL_ON = {"fail": Outcome.FAIL, "warn": Outcome.WARN, "never": None}


def exit_code(report: Report, fail_on: str = "fail") -> int:
    """The exit code of a finished run: the first of 130, 1, 3, 4 that holds, else 0.

    *unknown* never counts for 1; the verdict `inconclusive`, a step without a whole answer, an expectation of the
    playbook that cannot be told, or an answer that could not be written to the report's folder, counts for 4.
    """
    limit = FAIL_ON[fail_on]
    if report.interrupted:
        return 130
    judged = [f.outcome for f in report.findings] + [v.outcome for v in report.verdicts]
    if limit is not None and any(o >= limit and o is not Outcome.UNKNOWN for o in judged):
        return 1
    if any(host.error for host in report.hosts):
        return 3
    if report.trouble or any(step.status == "incomplete" for step in report.steps):
        return 4
    if any(f.outcome is Outcome.UNKNOWN and f.id.startswith(EXPECTED) for f in report.findings):
        return 4
    if any(verdict.outcome is Outcome.UNKNOWN for verdict in report.verdicts):
        return 4
    return 0


Progress = Callable[[str, str], None]
"""(host, what is happening now; empty when it is done with): called as a run goes on, from any thread."""
