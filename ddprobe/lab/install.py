"""Builds a made-up host: its system, virtual environment, models, processes, listeners and simulated SGLang."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ddprobe.lab import models, sglang
from ddprobe.lab.engine import meta_info, wiring
from ddprobe.lab.engine.engine import Engine
from ddprobe.lab.engine.ledger import Ledger
from ddprobe.lab.engine.tokenizer import Tokenizer
from ddprobe.lab.machine import Machine
from ddprobe.lab.proc import Listener, Process, add_gpus, add_proc
from ddprobe.lab.tree import File, Folder, Link, Tree

USER, UID = "lab", 1000
HOME = "/home/lab"
CACHE = f"{HOME}/.cache/huggingface/hub"
VENV = "/opt/sglang/venv"
PYTHON = f"{VENV}/bin/python"
SITE = f"{VENV}/lib/python3.12/site-packages"
LOG = f"{HOME}/sglang.log"
KERNEL = "6.8.0-52-generic"
DRIVER = "580.95.05"
MAIN_PID = 4711
DAY = 86400

# Made up, so that a report of the lab shows how secrets are masked.
ADMIN_KEY = "sk-lab-this-is-not-a-real-key"
HUB_TOKEN = "hf_LabThisIsNotARealTokenAtAllXyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a made-up host serves, and on what."""

    hostname: str
    gpu: str
    gpus: int
    target: str
    target_config: Mapping[str, Any]
    target_files: Mapping[str, File]
    special_tokens: int
    """Ids from here on are special ones."""
    drafter: str
    drafter_config: Mapping[str, Any]
    drafter_files: Mapping[str, File]
    given: Mapping[str, Any]
    """Server arguments under canonical names, in the order of the command line."""
    environment: Mapping[str, str]
    token_capacity: int
    weight_gb: float
    kv_cache_gb: float
    parts: wiring.Parts
    pace: float
    """Seconds of the lab per second that the made-up hardware takes: nobody waits for a minute on a lab."""
    served: Sequence[tuple[int, int]]
    """(prompt, output) in tokens of the requests it had before, at the hardware's own pace."""
    version: str = "0.5.23"


def machine(serving: Serving) -> Machine:
    """The host, whole."""
    now = int(time.time())
    tree = Tree(uid=UID)
    _system(tree, serving, now - 90 * DAY)
    _package(tree, serving.version, now - 9 * DAY)
    for repository, files in (
        (serving.target, serving.target_files),
        (serving.drafter, serving.drafter_files),
    ):
        models.add_to_cache(tree, CACHE, repository, files, uid=UID, now=now - 8 * DAY)
    _processes(tree, serving, now)
    engine = _engine(tree, serving, now)
    text = serving.target_config.get("text_config", serving.target_config)
    running = sglang.Running(
        arguments=_words(serving.given),
        given=serving.given,
        architectures=tuple(serving.target_config["architectures"]),
        model_type=serving.target_config.get("model_type", text["model_type"]),
        version=serving.version,
        weight_gb=serving.weight_gb,
        kv_cache_gb=serving.kv_cache_gb,
        engine=engine,
    )
    return Machine(
        hostname=serving.hostname,
        user=USER,
        uid=UID,
        tree=tree,
        servers={int(serving.given["port"]): sglang.server(running, time.time)},
        kernel=KERNEL,
    )


def _engine(tree: Tree, serving: Serving, now: int) -> Engine:
    """The simulated engine, with some requests behind it and a log that tells of them."""
    given = serving.given
    log = _Log(tree, "TP0" if serving.gpus > 1 else "", now - 12 * 3600)
    log.write(0.0, "ddprobe lab: a made-up log")
    if "speculative_algorithm" in given:
        for line in _drafter_lines(serving):
            log.write(38.0, line)
    text = serving.target_config.get("text_config", serving.target_config)
    speculates = "speculative_algorithm" in given
    engine = Engine(
        model=wiring.model(
            replace(serving.parts, law=serving.parts.law.paced(serving.pace)),
            config=serving.drafter_config,
            given=given,
            environment=serving.environment,
            ordinary=serving.special_tokens,
            capacity=serving.token_capacity,
        ),
        tokenizer=Tokenizer(serving.special_tokens),
        ledger=Ledger(
            draft_tokens=given["speculative_num_draft_tokens"] - 1 if speculates else None,
            capacity=serving.token_capacity,
            tree="speculative_ddtree_budget" in given,
        ),
        version=meta_info.version_of(serving.version),
        vocabulary=text["vocab_size"],
        context_length=given["context_length"],
        write_log=log.write,
    )
    for number, (prompt, output) in enumerate(serving.served):
        log.started = now - 11 * 3600 + 1800 * number
        engine.look_back(prompt, output, serving.parts.law)
    log.started = None
    log.write(0.0, f"ddprobe lab: from here on a second of the hardware takes {serving.pace:g} s")
    return engine


class _Log:
    """The server's log file on the made-up host."""

    def __init__(self, tree: Tree, rank: str, started: int) -> None:
        self.tree = tree
        self.rank = f" {rank}" if rank else ""
        self.started: int | None = started
        """Where its clock begins; None: it is the present."""
        self.text = b""

    def write(self, after: float, line: str) -> None:
        """Add a line that is written so many seconds after now."""
        at = (time.time() if self.started is None else self.started) + after
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
        self.text += f"[{stamp}{self.rank}] {line}\n".encode()
        self.tree.add(LOG, File(content=self.text, uid=UID, modified=int(at)))


def _drafter_lines(serving: Serving) -> tuple[str, str]:
    """What the server says of its drafter at start."""
    config, given = serving.drafter_config, serving.given
    mask = config["dflash_config"]["mask_token_id"]
    window = given.get("speculative_draft_window_size")
    return (
        f"Initialized DFLASH draft runner. attention_backend={given['attention_backend']}, "
        f"model={config['architectures'][0]}, block_size={given['speculative_num_draft_tokens']}, "
        f"draft_window_size={window}, compact_cache=False",
        f"DFLASH draft runner ready. mask_token={models.special_name(serving.target_files, mask)}, mask_token_id={mask}, "
        f"mask_token_id_override={mask}, noise_embed_scale=1.0",
    )


def _system(tree: Tree, serving: Serving, then: int) -> None:
    texts = {
        "/etc/hostname": f"{serving.hostname}\n",
        "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04.2 LTS (ddprobe lab)"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\n',
        "/etc/passwd": f"root:x:0:0:root:/root:/bin/bash\n{USER}:x:{UID}:{UID}::{HOME}:/bin/bash\n",
        "/etc/motd": "This host is made up: ddprobe lab.\n",
    }
    for path, text in texts.items():
        tree.add(path, File(content=text.encode(), modified=then))
    tree.add("/root", Folder(mode=0o700, modified=then))
    tree.add("/root/notes.txt", File(content=b"Not for everybody.\n", mode=0o600, modified=then))
    tree.add("/opt/sglang/deploy.txt", File(content=b"Only root may read this.\n", mode=0o600, modified=then))
    tree.add("/usr/bin/python3.12", File(size=8021824, mode=0o755, modified=then))
    tree.add("/dev/null", File(mode=0o666, modified=then))
    tree.add("/tmp", Folder(mode=0o777, modified=then))
    tree.add(HOME, Folder(uid=UID, mode=0o750, modified=then))
    addresses = [f"0000:{1 + 0x20 * number:02x}:00.0" for number in range(serving.gpus)]
    add_gpus(tree, serving.gpu, addresses, driver=DRIVER, now=then)


def _package(tree: Tree, version: str, then: int) -> None:
    """The virtual environment, with stand-ins for the engine's source."""
    tree.add(PYTHON, Link(target="/usr/bin/python3.12", modified=then))
    tree.add(f"{VENV}/bin/python3", Link(target="python", modified=then))
    tree.add(f"{VENV}/pyvenv.cfg", File(content=b"home = /usr/bin\nversion = 3.12.3\n", modified=then))
    for name, release in (("sglang", version), ("torch", "2.11.0"), ("transformers", "5.6.0")):
        folder = f"{SITE}/{name}-{release}.dist-info"
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {release}\nSummary: ddprobe lab: a stand-in\n"
        tree.add(f"{folder}/METADATA", File(content=text.encode(), modified=then))
        tree.add(f"{folder}/INSTALLER", File(content=b"pip\n", modified=then))
        tree.add(f"{folder}/top_level.txt", File(content=f"{name}\n".encode(), modified=then))
    _copy(tree, resources.files("ddprobe.lab") / "files" / "sglang", f"{SITE}/sglang", then)


def _copy(tree: Tree, source: Traversable, path: str, then: int) -> None:
    """The package's own data files: `x.py.txt` here is `x.py` there."""
    for entry in sorted(source.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            _copy(tree, entry, f"{path}/{entry.name}", then)
        elif entry.name.endswith(".txt"):
            tree.add(
                f"{path}/{entry.name.removesuffix('.txt')}", File(content=entry.read_bytes(), modified=then)
            )


def _words(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments as a person types them."""
    short = {"tp_size": "tp"}
    words: list[str] = []
    for name, value in given.items():
        words.append(f"--{short.get(name, name).replace('_', '-')}")
        if value is not True:
            words.append(str(value))
    return tuple(words)


def _processes(tree: Tree, serving: Serving, now: int) -> None:
    started = now - 12 * 3600
    environment = {
        "PATH": f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "USER": USER,
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": VENV,
        "HF_TOKEN": HUB_TOKEN,
        "CUDA_VISIBLE_DEVICES": ",".join(str(number) for number in range(serving.gpus)),
        "NCCL_P2P_LEVEL": "SYS",
        **serving.environment,
    }
    argv = (PYTHON, "-m", "sglang.launch_server", *_words(serving.given))

    def server(pid: int, argv: tuple[str, ...], name: str, sockets: tuple[int, ...] = ()) -> Process:
        return Process(
            pid=pid,
            parent=MAIN_PID if pid != MAIN_PID else 4690,
            uid=UID,
            argv=argv,
            name=name,
            executable="/usr/bin/python3.12",
            cwd=HOME,
            environment=environment,
            cgroup="/user.slice/user-1000.slice/session-3.scope",
            sockets=sockets,
            output=LOG,
            started=started,
        )

    def other(pid: int, parent: int, uid: int, program: str, sockets: tuple[int, ...] = ()) -> Process:
        name = program.rpartition("/")[2]
        return Process(
            pid=pid, parent=parent, uid=uid, argv=(program,), name=name, executable=program, sockets=sockets,
            environment={"PATH": "/usr/bin:/bin"}, started=started,
        )  # fmt: skip

    def title(rank: int) -> str:
        return f"sglang::scheduler_TP{rank}" if serving.gpus > 1 else "sglang::scheduler"

    ranks = [
        server(4801 + rank, (title(rank),), title(rank), (48301,) if rank == 0 else ())
        for rank in range(serving.gpus)
    ]
    processes = [
        other(1, 0, 0, "/usr/lib/systemd/systemd"),
        other(998, 1, 0, "/usr/sbin/sshd", (21377,)),
        other(4690, 1, UID, "/usr/bin/bash"),
        server(MAIN_PID, argv, "python", (48211,)),
        *ranks,
        server(4820, ("sglang::detokenizer",), "sglang::detokenizer"),
        other(91244, 998, UID, "/usr/bin/dash"),
    ]
    listeners = [
        Listener("0.0.0.0", 22, 0, 21377),
        Listener("127.0.0.1", int(serving.given["port"]), UID, 48211),
        Listener("127.0.0.1", 40031, UID, 48301),
    ]
    add_proc(tree, processes, listeners, kernel=KERNEL, now=now)
