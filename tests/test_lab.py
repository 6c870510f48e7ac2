"""The lab host: a real SSH server in this process, in front of nothing but a made-up tree."""

from __future__ import annotations

import ast
import io
import json
import shlex
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from ddprobe import hostsfile, lab, runner
from ddprobe.errors import NotAuthenticated, UsageError
from ddprobe.facts import SourceHit
from ddprobe.lab import http, install
from ddprobe.lab.machine import Machine
from ddprobe.lab.server import BANNER
from ddprobe.lab.shell import SORRY, Shell, Unrecognised, parse
from ddprobe.lab.tree import File, Folder, Tree
from ddprobe.model import Command, CommandResult, Glob, Host, HttpRequest, HttpResult, Outcome, Report, Step
from ddprobe.probes.draft.config import DraftConfig
from ddprobe.probes.engine.server import EngineServer
from ddprobe.probes.source.grep import SourceGrep
from ddprobe.probes.source.read import SourceRead
from ddprobe.redact import Redactor
from ddprobe.sessions import framing, open_session
from ddprobe.sessions.base import Session
from tests.silent import SilentWriter

MARKER = "ddprobe-0123456789abcdef0123456789abcdef"
TOKEN = "fedcba9876543210fedcba9876543210"
BASE = "http://127.0.0.1:30000"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with lab.running() as host:
        yield host


@pytest.fixture(scope="module")
def session(host: Host) -> Iterator[Session]:
    session = open_session(host, Redactor(), threading.Event())
    yield session
    session.close()


def asked(session: Session, *argv: str | Glob) -> CommandResult:
    (result,) = session.ask([Command(key="q", argv=argv)])
    assert isinstance(result, CommandResult)
    return result


def fetched(session: Session, path: str, base: str = BASE) -> HttpResult:
    (result,) = session.ask([HttpRequest(key="h", method="GET", path=path, base=base)])
    assert isinstance(result, HttpResult)
    return result


class TestTheRoad:
    def test_it_says_that_it_is_a_lab(self, session: Session) -> None:
        assert asked(session, "hostname").text == "lab-gpu01\n"
        assert "lab" in asked(session, "cat", "/etc/motd").text

    def test_strict_checking_holds(self, host: Host, session: Session) -> None:
        assert host.host_key == "strict"
        assert session.connection.host_key.startswith("ssh-ed25519 SHA256:")

    def test_nothing_of_the_laptop_is_seen(self, session: Session, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("of the laptop")
        assert asked(session, "cat", str(tmp_path / "mine")).exit_code == 1
        assert asked(session, "ls", "/").text.split() == [
            "dev",
            "etc",
            "home",
            "opt",
            "proc",
            "root",
            "sys",
            "tmp",
            "usr",
        ]
        assert asked(session, "ls", "/tmp").text == ""

    def test_questions_travel_together_and_side_by_side(self, session: Session) -> None:
        questions = [Command(key=str(n), argv=("echo", str(n)), alone=n % 2 == 1) for n in range(6)]
        assert [result.text for result in session.ask(questions)] == [f"{n}\n" for n in range(6)]

    def test_a_cap_cuts_and_says_so(self, session: Session) -> None:
        (result,) = session.ask([Command(key="q", argv=("cat", install.LOG), cap=10)])
        assert isinstance(result, CommandResult)
        assert (len(result.stdout), result.truncated) == (10, True)

    def test_nothing_is_left_running(self, session: Session) -> None:
        assert session.sweep() == 0

    def test_another_user_is_refused(self, host: Host) -> None:
        with pytest.raises(NotAuthenticated):
            open_session(replace(host, user="root"), Redactor(), threading.Event())

    def test_an_agent_full_of_other_keys_is_borne(self, host: Host) -> None:
        transport = paramiko.Transport(("127.0.0.1", host.port or 0))
        try:
            transport.start_client(timeout=5)
            for _ in range(12):
                with pytest.raises(paramiko.AuthenticationException):
                    transport.auth_publickey(host.user or "", paramiko.ECDSAKey.generate())
            transport.auth_publickey(
                host.user or "", paramiko.Ed25519Key.from_private_key_file(host.identity_file or "")
            )
            assert transport.is_authenticated()
        finally:
            transport.close()

    @pytest.mark.parametrize("line", ["cat /etc/passwd", "/bin/sh", "exec /bin/sh -s; id"])
    def test_there_is_no_shell_for_others(self, host: Host, line: str) -> None:
        client = connected(host)
        try:
            _, stdout, stderr = client.exec_command(line, timeout=5)
            assert (stdout.read(), stderr.read()) == (b"", SORRY.replace(b"\n", b"\r\n"))
            assert stdout.channel.recv_exit_status() == 126
        finally:
            client.close()

    def test_a_slow_client_keeps_its_channel(self, host: Host) -> None:
        client = connected(host)
        try:
            channel = client.get_transport().open_session(timeout=5)  # type: ignore[union-attr]
            time.sleep(0.5)
            assert not channel.closed
            channel.exec_command("uptime")
            assert channel.makefile_stderr("rb").read() == SORRY.replace(b"\n", b"\r\n")
        finally:
            client.close()

    def test_a_script_of_somebody_else_is_refused(self, host: Host) -> None:
        client = connected(host)
        try:
            stdin, stdout, stderr = client.exec_command("exec /bin/sh -s", timeout=5)
            stdin.write("id\n")
            stdin.flush()
            assert (stdout.read(), stderr.read()) == (b"", SORRY)
            assert stdout.channel.recv_exit_status() == 126
        finally:
            client.close()

    def test_only_the_simulated_server_can_be_reached(self, host: Host) -> None:
        client = connected(host)
        try:
            for address, port in (("127.0.0.1", host.port or 0), ("127.0.0.1", 1), ("192.0.2.1", 30000)):
                with pytest.raises(paramiko.ChannelException):
                    client.get_transport().open_channel("direct-tcpip", (address, port), ("", 0))  # type: ignore[union-attr]
        finally:
            client.close()

    def test_the_banner(self, host: Host) -> None:
        client = connected(host)
        try:
            assert client.get_transport().get_banner() == BANNER.encode()  # type: ignore[union-attr]
        finally:
            client.close()


def connected(host: Host) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.load_host_keys(host.known_hosts or "")
    client.connect(
        host.address or "", host.port or 0, host.user, key_filename=host.identity_file, allow_agent=False,
        look_for_keys=False, timeout=5,
    )  # fmt: skip
    return client


class TestTheEnd:
    def test_no_thread_and_no_file_stays(self) -> None:
        before = set(threading.enumerate())
        with lab.running() as host:
            folder = Path(host.identity_file or "").parent
            assert folder.stat().st_mode & 0o077 == 0
            session = open_session(host, Redactor(), threading.Event())
            assert asked(session, "true").whole
            # The lab goes down under a session that is still open.
        assert not folder.exists()
        session.close()
        for thread in set(threading.enumerate()) - before:
            thread.join(2)
        assert not set(threading.enumerate()) - before

    def test_up_writes_a_hosts_file_that_works(self) -> None:
        with lab.up() as running:
            assert hostsfile.load(running.hosts_file).hosts == (running.host,)
            # 1792 GB/s by the data sheet, where a second of the hardware takes 12.5 ms.
            assert running.host.gpu_bandwidth == 143360
            words = shlex.split(running.ssh_command)
            assert words[0] == "ssh"
            assert words[-1] == "lab@127.0.0.1"
            assert shlex.split(running.ddprobe_command)[:2] == ["ddprobe", "inspect-config"]

    def test_an_unknown_scenario_gets_the_nearest_name(self) -> None:
        with pytest.raises(UsageError) as caught, lab.running("founding-stroy"):
            pytest.fail("there is no such scenario")
        assert caught.value.advice == "did you mean founding-story?"


@pytest.fixture(scope="module")
def machine() -> Machine:
    tree = Tree(uid=1000)
    tree.add("/a", File(content=b"A\n"))
    tree.add("/b", Folder())
    return Machine(hostname="lab", user="lab", uid=1000, tree=tree)


class TestScripts:
    """What is understood as a script of ours, and what is not."""

    def answers(self, machine: Machine, data: bytes, size: int) -> tuple[bytes, bytes]:
        shell = Shell(machine)
        pieces = [piece for at in range(0, len(data), size) for piece in shell.feed(data[at : at + size])]
        return b"".join(out for out, _ in pieces), b"".join(err for _, err in pieces)

    @pytest.mark.parametrize("size", [1 << 20, 700, 33])
    def test_in_pieces_of_any_size(self, machine: Machine, size: int) -> None:
        commands = [Command(key="a", argv=("cat", "/a")), Command(key="b", argv=("cat", "/missing"))]
        data = framing.preamble(MARKER, TOKEN) + framing.script(MARKER, [(c, 5.0) for c in commands])
        stdout, stderr = self.answers(machine, data, size)
        reader = framing.Reader(MARKER, tuple(c.cap for c in commands))
        good, bad = reader.feed(stdout, stderr)
        assert reader.done
        assert (good.exit_code, good.stdout, good.stderr) == (0, b"A\n", b"")
        assert (bad.exit_code, bad.stdout, bad.stderr) == (
            1,
            b"",
            b"cat: /missing: No such file or directory\n",
        )

    @pytest.mark.parametrize(
        "body",
        [b"x", b"it's \\ \0 \xff\n", b'echo "$M done" >&7; }\n', b"finish; } | guard\n| ask 0 1 2 true"],
    )
    def test_a_body_is_kept_apart(self, machine: Machine, body: bytes) -> None:
        command = Command(key="a", argv=("true",), stdin=body)
        script = framing.script(
            MARKER, [(command, 5.0), (Command(key="b", argv=("echo", "it's | 'b'")), 0.3)]
        )
        marker, questions = parse(script.decode("utf-8", "surrogateescape"))
        assert marker == MARKER
        assert [(q.command.argv, q.command.stdin) for q in questions] == [
            (("true",), body),
            (("echo", "it's | 'b'"), b""),
        ]
        stdout, _ = self.answers(machine, script, 1 << 20)
        assert stdout.endswith(f"{MARKER} done\n".encode())
        assert b"it's | 'b'\n" in stdout

    def test_a_pattern_is_told_from_a_word(self, machine: Machine) -> None:
        commands = [Command(key="a", argv=("echo", Glob("/[ab]"))), Command(key="b", argv=("echo", "/[ab]"))]
        stdout, _ = self.answers(machine, framing.script(MARKER, [(c, 5.0) for c in commands]), 1 << 20)
        assert f"{MARKER} begin\n/a /b\n{MARKER} 0 ".encode() in stdout
        assert b"\n/[ab]\n" in stdout

    def test_the_sweep(self, machine: Machine) -> None:
        stdout, stderr = self.answers(machine, framing.sweep_script(MARKER), 10)
        assert (stdout, stderr) == (f"{MARKER} swept 0\n{MARKER} done\n".encode(), b"")

    @pytest.mark.parametrize(
        "data",
        [
            b"id\n",
            b"{ M='ddprobe-''00'\nrm -rf /; echo \"$M done\" >&7; }\n",
            framing.script(MARKER, [(Command(key="a", argv=("cat", "/a")), 5.0)]).replace(
                b"cat /a", b"cat /a; id"
            ),
            framing.script(MARKER, [(Command(key="a", argv=("cat", "/a")), 5.0)]).replace(
                b"begin ", b"begin 1"
            ),
            framing.preamble(MARKER, TOKEN).replace(b"sleep 1", b"sleep 2"),
        ],
    )
    def test_anything_else_is_refused(self, machine: Machine, data: bytes) -> None:
        with pytest.raises(Unrecognised):
            list(Shell(machine).feed(data))

    def test_the_policy_holds_here_too(self, machine: Machine) -> None:
        commands = [Command(key="a", argv=("rm", "/a")), Command(key="b", argv=("cat", "/etc/shadow"))]
        script = framing.script(MARKER, [(c, 5.0) for c in commands])
        stdout, stderr = self.answers(machine, script, 1 << 20)
        assert stdout.count(b" 126 ") == 2
        assert b"ddprobe lab: refused" in stderr


class TestTheServer:
    def test_sglang_answers(self, session: Session) -> None:
        info = json.loads(fetched(session, "/server_info").text)
        assert (info["version"], info["tp_size"], info["lab"]) == ("0.5.23", 8, True)
        assert info["internal_states"][0]["avg_spec_accept_length"] == 1.0
        assert json.loads(fetched(session, "/model_info").text)["model_path"] == "moonshotai/Kimi-K2.6"
        assert json.loads(fetched(session, "/v1/loads").text)["loads"][0]["speculative"]["accept_rate"] == 0.0
        assert json.loads(fetched(session, "/v1/models").text)["data"][0]["max_model_len"] == 262144
        assert fetched(session, "/ready").status == 200
        assert "sglang:spec_accept_length" in fetched(session, "/metrics").text

    def test_its_key_is_masked_on_the_way_in(self, session: Session) -> None:
        body = fetched(session, "/server_info").body
        assert b'"admin_api_key"' in body
        assert install.ADMIN_KEY.encode() not in body
        environ = asked(session, "cat", f"/proc/{install.MAIN_PID}/environ").stdout
        assert b"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1" in environ
        assert install.HUB_TOKEN.encode() not in environ

    def test_what_it_does_not_have(self, session: Session) -> None:
        assert fetched(session, "/load").status == 404
        assert "refused" in fetched(session, "/ready", "http://127.0.0.1:30001").failure

    def test_the_form_of_requests(self) -> None:
        server = http.Server({"/ready": http.Response(b"yes")})
        sent = (
            b"GET /ready?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"
            b"HEAD /ready HTTP/1.1\r\n\r\n"
            b"POST /ready HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
            b"GET /nope HTTP/1.1\r\nConnection: close\r\n\r\n"
            b"GET /ready HTTP/1.1\r\n\r\n"
        )
        wire = Wire(sent)
        http.serve(wire, server)
        answers = wire.said.decode()
        assert [line for line in answers.split("\r\n") if "HTTP/1.1 " in line] == [
            "HTTP/1.1 200 OK",
            "yesHTTP/1.1 200 OK",
            "HTTP/1.1 405 Method Not Allowed",
            '{"detail":"Method Not Allowed"}HTTP/1.1 404 Not Found',
        ]
        assert answers.endswith('{"detail":"Not Found"}')

    @pytest.mark.parametrize(
        "sent", [b"what\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"x" * 70000]
    )
    def test_what_is_no_request(self, sent: bytes) -> None:
        wire = Wire(sent)
        http.serve(wire, http.Server({}))
        assert wire.said.startswith(b"HTTP/1.1 400 Bad Request\r\n")


class Wire(io.BytesIO):
    """A connection whose other side has said everything already."""

    said = b""

    def recv(self, size: int, /) -> bytes:
        return self.read(min(size, 7))

    def sendall(self, data: bytes, /) -> None:
        self.said += data


class TestTheMadeUpHost:
    def test_stand_ins_are_marked_and_are_python(self, session: Session) -> None:
        names = asked(session, "find", f"{install.SITE}/sglang", "-type", "f").text.split()
        assert 20 <= len(names) <= 60
        for name in names:
            text = asked(session, "cat", name).text
            assert text.startswith("# ddprobe lab: a stand-in, not SGLang's source.")
            ast.parse(text)

    def test_the_cache_is_laid_out_as_the_hubs(self, session: Session) -> None:
        repository = f"{install.CACHE}/models--z-lab--Kimi-K2.6-DFlash"
        revision = asked(session, "cat", f"{repository}/refs/main").text
        config = f"{repository}/snapshots/{revision}/config.json"
        assert asked(session, "readlink", config).text.startswith("../../blobs/")
        drafter = json.loads(asked(session, "cat", config).text)
        assert drafter["layer_types"] == ["sliding_attention"] * 5 + ["full_attention"]
        assert (drafter["sliding_window"], drafter["block_size"]) == (2048, 8)
        assert drafter["dflash_config"] == {
            "mask_token_id": 163838,
            "target_layer_ids": [1, 12, 24, 35, 47, 58],
        }

    def test_the_drafters_weights_have_a_header(self, session: Session) -> None:
        pattern = f"{install.CACHE}/models--z-lab--Kimi-K2.6-DFlash/snapshots/*/model.safetensors"
        path = asked(session, "ls", Glob(pattern)).text.strip()
        data = asked(session, "head", "-c", "100000", path).stdout
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        assert header["fc.weight"]["shape"] == [7168, 6 * 7168]
        size = int(asked(session, "stat", "-L", "-c", "%s", path).text)
        assert size == 8 + length + max(
            entry["data_offsets"][1] for entry in header.values() if "shape" in entry
        )

    def test_eight_gpus_and_eight_ranks(self, session: Session) -> None:
        gpus = asked(
            session, "grep", "-h", "-e", "^Model", Glob("/proc/driver/nvidia/gpus/*/information")
        ).text
        assert gpus.count("RTX PRO 6000") == 8
        ranks = asked(
            session, "grep", "-a", "-l", "-e", "sglang::scheduler_TP", Glob("/proc/[0-9]*/cmdline")
        ).text
        assert len(ranks.split()) == 8

    def test_what_only_root_may_see(self, session: Session) -> None:
        for path in ("/root/notes.txt", "/opt/sglang/deploy.txt", "/proc/1/environ"):
            assert asked(session, "cat", path).stderr.decode() == f"cat: {path}: Permission denied\n"


def looked(scenario: str) -> Report:
    """The main job of `demo`."""
    steps = [
        Step("config", DraftConfig()),
        Step("server", EngineServer()),
        Step("grep", SourceGrep(pattern="commit_lens|accept", in_glob="srt/speculative/*")),
        Step("read", SourceRead(file="dflash_worker_v2.py", ranges="1-5,99990-99999")),
    ]
    with lab.running(scenario) as host:
        return runner.run("demo", [host], steps, SilentWriter(), open_session, lab=True)


class TestScenarios:
    @pytest.mark.parametrize("name", [one.name for one in lab.scenarios()])
    def test_the_main_job_ends(self, name: str) -> None:
        report = looked(name)
        assert [(step.status, step.reasons) for step in report.steps] == [("done", ())] * 4
        assert [(host.error, host.survivors) for host in report.hosts] == [("", 0)]
        hits = [fact for step in report.steps for fact in step.facts if isinstance(fact, SourceHit)]
        assert "DFlashWorkerV2._commit_accept" in {hit.within for hit in hits}

    def test_founding_story_has_its_mistakes(self) -> None:
        # SA01 warns where only the server was asked, and fails where its target is known to have MLA.
        findings = {(finding.id, finding.outcome) for finding in looked("founding-story").findings}
        assert {one for one in findings if one[1] >= Outcome.WARN} == {
            ("DC33", Outcome.WARN),
            ("EN02", Outcome.WARN),
            ("SA01", Outcome.FAIL),
            ("SA01", Outcome.WARN),
            ("SA02", Outcome.WARN),
        }

    def test_healthy_has_none(self) -> None:
        findings = looked("healthy").findings
        assert [finding for finding in findings if finding.outcome >= Outcome.WARN] == []
        assert [finding for finding in findings if finding.outcome is Outcome.PASS]
