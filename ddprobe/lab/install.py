"""Builds a made-up host: its system, virtual environment, models, processes, listeners and simulated SGLang."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ddprobe.lab import gpus, models, sglang
from ddprobe.lab.machine import Machine
from ddprobe.lab.proc import Listener, Process, add_gpus, add_proc
from ddprobe.lab.serving import Log, Serving, start
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
FIRST_RANK = 4801
DAY = 86400

# Made up, so that a report of the lab shows how secrets are masked.
ADMIN_KEY = "sk-lab-this-is-not-a-real-key"
HUB_TOKEN = "hf_LabThisIsNotARealTokenAtAllXyz"


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
    cards = gpus.Gpus(
        name=serving.gpu,
        addresses=_addresses(serving),
        driver=DRIVER,
        ranks=tuple(FIRST_RANK + rank for rank in range(serving.gpus)),
        used_mib=int((serving.weight_gb + serving.kv_cache_gb) * 1e9 / 2**20) + 2048,
    )
    gpus.add_to(tree, cards, now - 12 * DAY)
    engine = cards.engine = start(serving, Log(tree, LOG, UID, "TP0" if serving.gpus > 1 else ""), now)
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
        # A second of the hardware is shorter here, and no fewer bytes are read in it.
        gpu_bandwidth=serving.bandwidth / serving.pace,
        gpus=cards,
        kernel=KERNEL,
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
    add_gpus(tree, serving.gpu, _addresses(serving), driver=DRIVER, now=then)


def _addresses(serving: Serving) -> tuple[str, ...]:
    """Where the cards are on the PCI bus."""
    return tuple(f"0000:{1 + 0x20 * number:02x}:00.0" for number in range(serving.gpus))


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
        server(FIRST_RANK + rank, (title(rank),), title(rank), (48301,) if rank == 0 else ())
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
