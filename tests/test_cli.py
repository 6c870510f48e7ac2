"""The command line: what it says, where, and with which exit code."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from ddprobe import __version__, probes
from ddprobe.__main__ import main
from ddprobe.blocks import Block, Paragraph
from ddprobe.cli import app, flow, options, screen
from ddprobe.errors import HostKeyChanged, Unreachable, UsageError
from ddprobe.model import (
    Command,
    CommandResult,
    Connection,
    Conversation,
    Evidence,
    Fact,
    Finding,
    Gap,
    Help,
    Host,
    Outcome,
    Probe,
    Question,
    Result,
    Step,
)
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session as real_open
from ddprobe.sessions.base import Session
from tests.reports import HOSTILE

# --- a probe and a host that need no network ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Echo(Probe):
    """Says what the host says."""

    outcome: Annotated[str, Help("how it ends")] = "pass"
    times: Annotated[int, Help("how often to ask")] = 1
    ratio: Annotated[float, Help("a number")] = 0.5
    loud: Annotated[bool, Help("whether to shout")] = False
    words: Annotated[tuple[str, ...], Help("what else to say")] = ()

    findings: ClassVar[dict[str, str]] = {"ECHO": "the host said something"}

    def collect(self, host: Host) -> Conversation:
        yield tuple(Command(key=f"hello-{n}", argv=("echo", "hello")) for n in range(self.times))

    def interpret(self, evidence: Evidence) -> Iterator[Fact | Finding | Gap]:
        text = evidence.text("hello-0").strip()
        outcome = Outcome[self.outcome.upper()]
        yield Finding(id="ECHO", outcome=outcome, subject="greeting", summary=f"it said {text}, as it should")

    def show(self, facts: Sequence[Fact]) -> Iterator[Block]:
        yield Paragraph("this is what was shown")


class Mute(Session):
    """A host that answers `hello`, or does not."""

    failure = ""

    @property
    def connection(self) -> Connection:
        return Connection(transport="ssh", host_key="ssh-ed25519 SHA256:abc")

    def _carry(self, questions: tuple[Question, ...]) -> Sequence[Result]:
        results = []
        for question in questions:
            assert isinstance(question, Command)
            results.append(
                CommandResult(question=question, failure=self.failure)
                if self.failure
                else CommandResult(question=question, exit_code=0, stdout=b"hello\n")
            )
        return results


class Broken(Mute):
    failure = "the connection went dead"


def opened(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:
    """What stands in for every way to a host; the host's name says what happens."""
    if host.name == "stranger":
        raise HostKeyChanged("stranger: its host key changed", "ask who runs it")
    if host.name == "ctrl-c":
        os.kill(os.getpid(), signal.SIGINT)
        assert cancelled.wait(20)
        raise Unreachable("ctrl-c: interrupted")
    return (Broken if host.name == "dead" else Mute)(host, redactor, cancelled)


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DDPROBE_HOSTS", "DDPROBE_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ddprobe.sessions.open_session", opened)
    monkeypatch.setattr(
        probes, "load", lambda name: Echo if name in ("echo", Echo.name()) else real_load(name)
    )
    return tmp_path


real_load = probes.load


def errors(capsys: pytest.CaptureFixture[str]) -> list[str]:
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.splitlines()


# --- help, version, mistakes -------------------------------------------------------------------------------


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in app.COMMANDS)
    assert "\x1b[" not in told


def test_no_command_shows_the_help_and_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([]) == 2
    assert "inspect-config" in capsys.readouterr().out
    assert app.run(["report"]) == 2
    assert "show" in capsys.readouterr().out


@pytest.mark.parametrize("name", [*app.COMMANDS, "report list", "report show", "lab up", "lab scenarios"])
def test_every_command_has_a_help_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([*name.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"Usage: ddprobe {name}")
    assert (f"Example: ddprobe {name}" in told) is (name not in ("report", "lab", "playbook"))


@pytest.mark.parametrize(
    "name", ["inspect-config", "server", "commit-probe", "grep", "read", "probe", "hosts", "demo"]
)
def test_every_look_at_hosts_takes_all_the_common_options(name: str) -> None:
    command = app._command(name)
    assert {spelling for parameter in command.params for spelling in parameter.opts} >= options.SPELLINGS


@pytest.mark.parametrize("name", app.COMMANDS)
def test_a_help_page_fills_its_lines(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence is broken where the screen ends, not where it is broken in the source."""
    monkeypatch.setenv("COLUMNS", "90")
    assert app.run([name, "--help"]) == 0
    prose = capsys.readouterr().out.partition("╭")[0].splitlines()
    for line, after in itertools.pairwise(prose):
        if line.strip() and after.strip():
            assert len(line.rstrip()) + 1 + len(after.split()[0]) > 90


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ddprobe {__version__}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gerp x", ["ddprobe: there is no command 'ddprobe gerp'", "  did you mean grep?"]),
        ("telepathy", ["ddprobe: there is no command 'ddprobe telepathy'", "  ddprobe --help lists them"]),
        ("report open", ["ddprobe: there is no command 'ddprobe report open'", "  it has list, show"]),
        ("report shwo", ["ddprobe: there is no command 'ddprobe report shwo'", "  did you mean show?"]),
        ("grep x h --hsots f", ["ddprobe: ddprobe grep has no option --hsots", "  did you mean --hosts?"]),
        ("grep x h -z", ["ddprobe: ddprobe grep has no option -z", "  see ddprobe grep --help"]),
        ("--json hosts", ["ddprobe: --json goes after the command", "  as in ddprobe server gpu1 --json"]),
        ("grep", ["ddprobe: PATTERN is missing", "  see ddprobe grep --help"]),
        ("server h --reports", ["ddprobe: option '--reports' requires an argument", "  see ddprobe server --help"]),
        ("server h --fail-on worse", ["ddprobe: --fail-on 'worse' is not a level", "  one of fail, warn, never"]),
        ("server h -q -v", ["ddprobe: -q and -v ask for opposite things", "  give one of them"]),
        ("server h --timeout soon", ["ddprobe: --timeout: 'soon' is not a duration", "  durations look like 25 (seconds), 1.5s, 2m or 1h"]),
        ("server h --timeout 2h", ["ddprobe: --timeout '2h' is out of bounds", "  above 0 and at most 1h"]),
        ("server --hosts gone.yaml", ["ddprobe: --hosts gone.yaml: there is no such file"]),
        ("server -- -oProxyCommand=x", ["ddprobe: '-oProxyCommand=x' cannot be a host", "  a host's name does not begin with '-'"]),
        ("grep a( h", ["ddprobe: in the pattern 'a(', at character 2: this ( is never closed", "  write \\( for the character itself"]),
        ("grep a h -C many", ["ddprobe: --context 'many' is not a whole number"]),
        ("read f.py:9-3 h", ["ddprobe: the range '9-3' ends before it begins", "  did you mean 3-9?"]),
        ("probe source.gerp h", ["ddprobe: there is no probe 'source.gerp'", "  did you mean source.grep or source.read or source.attention?"]),
        ("probe echo h --set tims=2", ["ddprobe: test_cli.Echo has no setting 'tims'", "  did you mean times?"]),
        ("probe echo h --set times", ["ddprobe: --set 'times' has no value", "  write --set name=value"]),
        ("probe echo h --set loud=si", ["ddprobe: --set loud: 'si' is not true or false"]),
        ("probe echo h --set times=x", ["ddprobe: --set times: 'x' is not a size", "  sizes look like 4096, 1k (1024), 1.5k, 128k or 1m"]),
        ("probe source.grep h", ["ddprobe: source.grep needs pattern", "  add --set pattern=…"]),
        ("demo gpu1", ["ddprobe: ddprobe demo has no use for gpu1", "  see ddprobe demo --help"]),
        ("report show a b", ["ddprobe: ddprobe report show has no use for b", "  see ddprobe report show --help"]),
        ("server --hosts .", ["ddprobe: --hosts .: it is a folder"]),
        ("report list --reports gone", ["ddprobe: there is no folder gone", "  name a folder of reports with --reports"]),
        ("report show", ["ddprobe: there is no report in reports", "  name a folder of reports with --reports"]),
    ],
)  # fmt: skip
def test_a_mistake_is_a_line_on_stderr_with_what_to_try(
    line: str, said: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echo, "name", staticmethod(lambda: "test_cli.Echo"))
    assert app.run(line.split()) == 2
    assert errors(capsys)[: len(said)] == said


def test_mistakes_in_the_hosts_file_come_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.yaml").write_text("defualt: a\nhosts: {a: {prot: 1}}\n")
    assert app.run(["server", "a"]) == 2
    told = errors(capsys)
    assert told[0].startswith("ddprobe: hosts.yaml:1:1: unknown key 'defualt' (did you mean 'default'?)")
    assert told[1].startswith("hosts.yaml:2:13: unknown key 'prot' (did you mean 'port'?)")
    assert told[2] == "  hosts.example.yaml shows every key"


def test_no_host_and_no_file_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["server"]) == 2
    assert errors(capsys)[0] == "ddprobe: no HOST is given and there is no hosts file"


def test_an_error_of_our_own_is_a_line_and_with_debug_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*_: object) -> None:
        raise ZeroDivisionError("\x1b[31mhello")

    monkeypatch.setattr(flow, "look", burst)
    monkeypatch.setattr("ddprobe.cli.targets.resolve", burst)
    assert app.run(["server", "h"]) == 4
    [line, _] = errors(capsys)
    assert line == "ddprobe: an error in ddprobe itself: ZeroDivisionError: �[31mhello"
    assert app.run(["server", "h", "--debug"]) == 4
    assert errors(capsys)[0] == "Traceback (most recent call last):"


def test_ctrl_c_before_a_run_is_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ddprobe.cli.targets.resolve", interrupt)
    assert app.run(["server", "h"]) == 130
    assert errors(capsys) == ["ddprobe: interrupted"]


def test_ctrl_c_while_modules_are_loaded_is_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loading(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "ddprobe.cli.app", Loading("ddprobe.cli.app"))
    monkeypatch.setattr(sys, "argv", ["ddprobe", "server", "h"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert errors(capsys) == ["ddprobe: interrupted"]


# --- a run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("probe echo h", 0),
        ("probe echo h --set outcome=warn", 0),
        ("probe echo h --set outcome=warn --fail-on warn", 1),
        ("probe echo h --set outcome=fail", 1),
        ("probe echo --set outcome=fail --fail-on never h", 0),
        ("probe echo h --set outcome=unknown --fail-on warn", 0),
        ("probe echo h dead", 4),
        ("probe echo h stranger dead", 3),
        ("probe echo h stranger dead --set outcome=fail", 1),
        ("probe echo ctrl-c", 130),
    ],
)
def test_exit_codes_of_a_run(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(line.split()) == code
    assert "Traceback" not in capsys.readouterr().err


def test_json_is_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["probe", "echo", "h", "stranger", "--json"]) == 3
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert {"schema", "outcome", "hosts", "findings", "verdicts", "steps", "lab"} <= report.keys()
    assert [host["name"] for host in report["hosts"]] == ["h", "stranger"]
    assert report["findings"][0]["id"] == "ECHO"
    assert told.err == ""


@pytest.mark.parametrize(
    "line",
    ["hosts h", "doctor", "probes", "probes host.reach", "report list", "lab scenarios", "probe echo h"],
)
def test_every_json_document_names_its_schema(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    app.run([*line.split(), "--json"])
    assert re.fullmatch(r"ddprobe-[a-z]+/1", json.loads(capsys.readouterr().out)["schema"])


def test_no_json_document_acts_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen.dump({"says": HOSTILE})
    told = capsys.readouterr().out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", told)
    assert json.loads(told) == {"says": HOSTILE}


def test_a_name_that_several_reports_have_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(9):
        folder = Path("reports", f"2026-{number}-read")
        folder.mkdir(parents=True)
        (folder / "events.jsonl").touch()
    assert app.run(["report", "show", "read"]) == 2
    told = errors(capsys)
    assert told[0] == "ddprobe: 'read' stands in several names"
    assert told[1].endswith("2026-4-read and 4 more")


def test_a_report_is_kept_shown_and_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["probe", "echo", "h", "--reports", "mine", "-v"]) == 0
    told = capsys.readouterr().out
    assert "this is what was shown" in told
    assert "it said hello" in told
    assert "\x1b[" not in told
    [folder] = Path("mine").iterdir()
    assert folder.name in "".join(told.splitlines()[-2:])
    assert app.run(["report", "list", "--reports", "mine"]) == 0
    assert folder.name in capsys.readouterr().out
    assert app.run(["report", "show", "--reports", "mine", "-v"]) == 0
    assert "it said hello" in capsys.readouterr().out
    assert app.run(["report", "show", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["id"] == "ECHO"
    assert app.run(["report", "show", folder.name[:20], "--reports", "mine", "--markdown"]) == 0
    assert "this is what was shown" in capsys.readouterr().out
    assert app.run(["report", "list", "--reports", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"][0]["folder"] == str(folder)
    assert app.run(["report", "show", "nothing-like-it", "--reports", "mine"]) == 2


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Host, ...], Probe]]:
    """What would have been looked at: hosts and first probe of every run."""
    seen: list[tuple[tuple[Host, ...], Probe]] = []

    def look(name: str, hosts: Sequence[Host], steps: Sequence[Step], options: object) -> int:  # noqa: ARG001
        seen.append((tuple(hosts), steps[0].probe))
        return 0

    monkeypatch.setattr(flow, "look", look)
    return seen


def test_the_settings_have_the_probes_own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    made = looked_at(monkeypatch)
    words = "probe echo h --set times=1k --set ratio=2.5 --set loud=true --set words=a,b --set outcome=x"
    assert app.run(words.split()) == 0
    assert [probe for _, probe in made] == [
        Echo(times=1024, ratio=2.5, loud=True, words=("a", "b"), outcome="x")
    ]


def test_timeout_and_the_hosts_file_reach_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looked_at(monkeypatch)
    Path("hosts.yaml").write_text("default: a\nhosts: {a: {user: me, command_timeout: 9}, b: }\n")
    assert app.run(["probe", "echo", "--timeout", "2m"]) == 0
    assert app.run(["probe", "echo", "b", "other"]) == 0
    assert [host for hosts, _ in seen for host in hosts] == [
        Host(name="a", user="me", command_timeout=120),
        Host(name="b"),
        Host(name="other"),
    ]


def test_grep_and_read_hand_their_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from ddprobe.probes.source.grep import SourceGrep
    from ddprobe.probes.source.read import SourceRead

    made = looked_at(monkeypatch)
    Path("here.py").write_text("")
    assert app.run(["grep", "a|b", "h", "--in", "srt/*", "-C", "3", "-i", "-w"]) == 0
    assert app.run(["read", "here.py:1-5,9", "h"]) == 0
    assert app.run(["read", "there.py", "--symbol", "A.b", "--context", "2", "h"]) == 0
    assert [probe for _, probe in made] == [
        SourceGrep(pattern="a|b", in_glob="srt/*", context=3, ignore_case=True, word=True),
        SourceRead(file="here.py", ranges="1-5,9", exists_here=True),
        SourceRead(file="there.py", symbol="A.b", context=2),
    ]


def test_reports_that_cannot_be_written_are_said_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("file").write_text("")
    assert app.run(["probe", "echo", "ctrl-c", "--reports", "file"]) == 2
    assert errors(capsys)[0].startswith("ddprobe: cannot write the report in file: ")


# --- hosts ---------------------------------------------------------------------------------------------------


def test_hosts_shows_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.yaml").write_text(
        "default: a\ngroups: {g: [a, b]}\nhosts: {a: {address: 10.0.0.5, port: 22, tags: [x]}, b: {engine: vllm}}\n"
    )
    assert app.run(["hosts"]) == 0
    told = capsys.readouterr().out
    assert "a (default)" in told
    assert "10.0.0.5:22" in told
    assert "@g" in told
    assert app.run(["hosts", "b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["default"] == "a"
    assert [host["name"] for host in document["hosts"]] == ["b"]


def test_hosts_shows_what_some_host_has_and_who_is_not_in_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("hosts.yaml").write_text(
        "hosts: {gpu1: {jump: bastion}, gpu2: {container: {runtime: docker, name: main}}, gpu3: }\n"
    )
    assert app.run(["hosts", "gpu[1-4]"]) == 0
    told = [re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    assert told[0] == ["host", "jump", "container"]
    assert told[2:6] == [["gpu1", "bastion"], ["gpu2", "docker main"], ["gpu3"], ["gpu4 (not in the file)"]]
    Path("hosts.yaml").write_text("hosts: {gpu1: {transport: openssh}, gpu3: }\n")
    assert app.run(["hosts"]) == 0
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert told[0] == ["host", "transport"]
    assert told[2:4] == [["gpu1", "openssh"], ["gpu3", "ssh"]]
    Path("hosts.yaml").write_text("hosts:\n")
    assert app.run(["hosts"]) == 0
    assert capsys.readouterr().out == "hosts.yaml: 0 hosts.\n"


def test_hosts_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["hosts"]) == 2
    assert errors(capsys)[0] == "ddprobe: there is no hosts file"


def test_hosts_check_folds_the_same_trouble(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(host: Host, redactor: Redactor, cancelled: threading.Event) -> Session:  # noqa: ARG001
        raise HostKeyChanged(f"{host.name}: its host key changed", "ask who runs it")

    monkeypatch.setattr("ddprobe.sessions.open_session", refused)
    assert app.run(["hosts", "gpu[01-12]", "--check"]) == 3
    told = capsys.readouterr().out
    assert "gpu[01-12]: its host key changed" in " ".join(told.split())
    assert told.count("host key changed") == 1
    assert "0 of 12 hosts answered" in told


def test_hosts_check_says_who_is_missing_however_little_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.run(["hosts", "h", "stranger", "--check", "-q"]) == 3
    told = capsys.readouterr().out
    assert told == "stranger: its host key changed\n→ ask who runs it\n\n1 of 2 hosts answered.\n"
    assert app.run(["hosts", "h", "stranger", "--check", "-v"]) == 3
    told = capsys.readouterr().out
    assert "── reach  h" in told
    assert "stranger its host key changed" in told


# --- probes ----------------------------------------------------------------------------------------------------


def test_probes_lists_all_and_shows_a_manual(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["probes"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in probes.names())
    assert app.run(["probes", "source.grep", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["question"] == "Where in the installed engine source does a pattern occur?"
    assert {
        key: value
        for key, value in next(s for s in page["settings"] if s["name"] == "word").items()
        if key != "help"
    } == {"name": "word", "type": "bool", "default": False, "required": False}
    assert {"find", "grep", "cat"} <= set(page["programs"])
    assert page["http"] == []
    assert app.run(["probes", "engine.server"]) == 0
    told = capsys.readouterr().out
    assert "GET /server_info" in told
    assert "server.none" in told


# --- the lab -------------------------------------------------------------------------------------------------


def test_the_demo_does_the_main_job_and_says_that_it_is_a_lab(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddprobe.sessions.open_session", real_open)
    short = ["--set", "contexts=1k,4k", "--set", "step_contexts=1k,2k,4k", "--set", "arms=repeat,far-copy"]
    assert app.run(["demo", *short]) == 1
    told = capsys.readouterr().out
    assert told.startswith("LAB: ")
    for step in ("gpu", "logs", "commit", "step-time"):
        assert f"── {step}  lab-" in told
    for step in ("config", "server", "grep", "read", "attention"):
        assert f"\n· {step}  lab-gpu01: " in told
        assert f"(evidence/lab-gpu01/{step}/)" in " ".join(told.split())
    assert "metric_inconsistency (commit_path)" in told
    assert "commit_lens = accept_len + 1" in told
    assert "≠" not in told, "nothing disagrees there, so no mark is explained"
    assert app.run(["demo", "--scenario", "healthy", "--json", *short]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["lab"] is True
    assert report["playbook"]["name"] == "commit-len-one"
    assert {step["status"] for step in report["steps"]} == {"done", "skipped"}
    assert [step["id"] for step in report["steps"] if step["status"] == "skipped"] == ["commit-longer"]
    assert [verdict["name"] for verdict in report["verdicts"]] == ["healthy"]
    assert {span["status"] for span in report["ranges"]} == {"complete"}
    assert app.run(["demo", "--scenario", "helthy"]) == 2
    assert errors(capsys) == ["ddprobe: the lab has no scenario 'helthy'", "  did you mean healthy?"]


def test_a_lab_that_is_up_is_a_host_like_any_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddprobe.sessions.open_session", real_open)
    process = subprocess.Popen(
        [sys.executable, "-m", "ddprobe", "lab", "up", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    with process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
            assert process.poll() is None
        lab = json.loads(text)
        assert app.run(["hosts", "--check", "--hosts", lab["hosts_file"]]) == 0
        told = capsys.readouterr().out
        assert lab["host"] in told
        assert "1 of 1 host answered." in told
        reports = Path(lab["hosts_file"]).parent / "reports"
        app.run(["server", "--hosts", lab["hosts_file"], "--json", "--reports", str(reports)])
        assert json.loads(capsys.readouterr().out)["lab"] is True
        process.terminate()
        assert process.wait(timeout=30) == 0
    assert not Path(lab["hosts_file"]).parent.exists()


# --- as processes ------------------------------------------------------------------------------------------------


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT
    )


def test_help_waits_for_no_library_that_it_does_not_need() -> None:
    heavy = ("pydantic", "yaml", "paramiko", "fabric", "httpcore", "markdown_it", "pygments", "ClusterShell")
    code = (
        "import sys; from ddprobe.cli.app import run; "
        f"run(['--help']); run(['grep', '--help']); print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_line_is_understood_without_pydantic() -> None:
    code = (
        "import sys; from ddprobe.cli import app, flow; flow.look = lambda *_, **__: 0; "
        "assert app.run(['grep', 'x', 'gpu1', '--timeout', '3']) == 0; print('pydantic' in sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout == "False\n"


def test_a_reader_that_has_gone_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ddprobe", "probes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(("closed", "code"), [("probes >&-", 0), ("probes 2>&-", 0), ("gerp >&- 2>&-", 2)])
def test_a_stream_that_was_closed_before_changes_no_exit_code(closed: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m ddprobe {closed}', sys.executable],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, b"")


def test_the_module_runs_as_a_program() -> None:
    done = python("-m", "ddprobe", "gerp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ddprobe: there is no command 'ddprobe gerp'\n")
    assert python("-m", "ddprobe", "--version").stdout == f"ddprobe {__version__}\n"


def test_usage_errors_are_what_typer_is_told_to_make_of_them() -> None:
    with pytest.raises(UsageError, match="PATTERN is missing"):
        app._run(["grep"])
