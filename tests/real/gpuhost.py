"""A made-up GPU host on this machine, of real parts: what the tests' sshd lets ddprobe find.

Two virtual environments with the *unmodified* source of two sglang releases, a Hugging Face cache in its real layout
(snapshots of links into blobs), and a running process whose command line, environment, working directory and
listening port are those of a real server. Its HTTP answers are recorded ones. Only the GPU is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
SECRET = "sk-canary-5f2c9a71d3"
"""The server's API key: it stands in its arguments and in what /server_info answers, and may appear nowhere else."""

DRAFTER: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 6,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 163840,
    "num_target_layers": 61,
    "block_size": 8,
    "max_position_embeddings": 262144,
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    "sliding_window": 2048,
    "use_sliding_window": True,
    "max_window_layers": 5,
    "rope_theta": 50000.0,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 64.0,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
    "dtype": "bfloat16",
    "dflash_config": {"mask_token_id": 163838, "target_layer_ids": [1, 12, 24, 35, 47, 58]},
}
TARGET: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 163840,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
        "rope_scaling": {
            "type": "yarn",
            "factor": 64.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        "dtype": "bfloat16",
    },
}
DRAFTER_ID, TARGET_ID = "z-lab/Kimi-K2.6-DFlash", "moonshotai/Kimi-K2.6"
REVISION = "9f1b6c0d5e2a47388c1d0e4f5a6b7c8d9e0f1a2b"

# Runs in the place of `sglang.launch_server`, from a .pth line of the virtual environment, before the real module
# is even looked up: serves recorded answers and stays.
SERVER = r"""
import http.server, os, pathlib, subprocess, sys, urllib.parse

def rank(name):
    # A worker with the name that a scheduler gives itself.
    worker = subprocess.Popen([name], executable=sys.executable, stdin=subprocess.PIPE)
    worker.stdin.write(b"import time; time.sleep(100000)\n")
    worker.stdin.close()

def stay(argv):
    answers = pathlib.Path(os.environ["DDPROBE_TEST_ANSWERS"])
    key = argv[argv.index("--api-key") + 1]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = urllib.parse.urlsplit(self.path).path
            file = answers / (path.strip("/").replace("/", "_") + ".json")
            open_to_all = path in ("/ready", "/health", "/metrics")
            if not open_to_all and self.headers.get("Authorization") != "Bearer " + key:
                self.answer(401, b'{"error":"Unauthorized"}')
            elif path == "/ready":
                self.answer(200, b"")
            elif file.exists():
                self.answer(200, file.read_bytes())
            else:
                self.answer(404, b'{"detail":"Not Found"}')

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    for number in range(2):
        rank(f"sglang::scheduler_TP{number}")
    address = ("127.0.0.1", int(argv[argv.index("--port") + 1]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()

if "sglang.launch_server" in sys.orig_argv:
    stay(sys.orig_argv)
"""


@dataclass(frozen=True)
class GpuHost:
    """Where everything lies, and which processes run."""

    root: Path
    package: Path
    old_package: Path
    drafter: Path
    """The drafter's snapshot folder."""
    target: Path
    port: int
    pid: int
    ranks: tuple[int, ...]
    uid: int | None = None


def wheel(version: str) -> Path:
    """The downloaded wheel of that sglang release; fails, with the command to run, when it is not there."""
    found = sorted((ROOT / ".wheels").glob(f"sglang-{version}-*.whl"))
    assert found, f"sglang {version}'s wheel is missing: tests/run downloads it to .wheels/"
    return found[0]


def install(version: str, folder: Path) -> Path:
    """A virtual environment with that release's source and metadata. Returns the package's folder."""
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    with zipfile.ZipFile(wheel(version)) as archive:
        archive.extractall(site, [n for n in archive.namelist() if n.endswith((".py", "METADATA", "RECORD"))])
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\nversion = 3.11\n")
    return site / "sglang"


def put_model(cache: Path, name: str, config: dict[str, Any], others: dict[str, bytes]) -> Path:
    """A model in the hub cache's layout: refs, blobs, and a snapshot of links. Returns the snapshot's folder."""
    model = cache / f"models--{name.replace('/', '--')}"
    snapshot = model / "snapshots" / REVISION
    for folder in (model / "refs", model / "blobs", snapshot):
        folder.mkdir(parents=True)
    (model / "refs" / "main").write_text(REVISION)
    for file, content in {"config.json": json.dumps(config, indent=2).encode(), **others}.items():
        blob = model / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / file).symlink_to(Path("..") / ".." / "blobs" / blob.name)
    return snapshot


LAYER = (
    "input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip


def weights_header() -> bytes:
    """The start of a drafter's model.safetensors: length and header with every tensor's name, no weights."""
    names = [f"layers.{layer}.{name}.weight" for layer in range(6) for name in LAYER] + [
        "norm.weight",
        "hidden_norm.weight",
    ]
    shapes = {name: [7168] for name in names} | {"fc.weight": [7168, 6 * 7168]}
    tensors = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()
    }
    header = json.dumps(tensors).encode()
    return len(header).to_bytes(8, "little") + header


@contextmanager
def gpu_host(root: Path, *, server_info: dict[str, Any] | None = None) -> Iterator[GpuHost]:
    """Lay the host out under `root` and keep its server running for as long as the block runs."""
    root.chmod(0o755)
    package = install("0.5.23", root / "opt" / "sglang")
    old_package = install("0.5.12", root / "opt" / "sglang-old")
    cache = root / "models" / "hub"
    drafter = put_model(cache, DRAFTER_ID, DRAFTER, {"model.safetensors": weights_header()})
    tokenizer = {"added_tokens_decoder": {"163838": {"content": "<|MASK|>", "special": True}}}
    target = put_model(cache, TARGET_ID, TARGET, {"tokenizer_config.json": json.dumps(tokenizer).encode()})

    port = free_port()
    answers = root / "answers"
    shutil.copytree(DATA / "sglang-0.5.23", answers)
    launch = [
        "--model-path", TARGET_ID, "--tp", "8", "--trust-remote-code",
        "--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", DRAFTER_ID,
        "--speculative-num-draft-tokens", "8", "--attention-backend", "triton",
        "--context-length", "262144", "--host", "127.0.0.1", "--port", str(port), "--api-key", SECRET,
    ]  # fmt: skip
    info = json.loads((answers / "server_info.json").read_text())
    resolved = {
        "model_path": TARGET_ID, "served_model_name": TARGET_ID, "tp_size": 8, "port": port, "api_key": SECRET,
        "speculative_draft_model_path": DRAFTER_ID, "speculative_num_draft_tokens": 8, "attention_backend": "triton",
        "speculative_draft_attention_backend": "triton", "context_length": 262144, "max_running_requests": 48,
        "launch_command": "python -m sglang.launch_server " + " ".join(launch),
    }  # fmt: skip
    info.update(resolved | (server_info or {}))
    info["internal_states"][0].update(resolved)
    (answers / "server_info.json").write_text(json.dumps(info))
    model = json.loads((answers / "model_info.json").read_text())
    model.update(
        model_path=TARGET_ID, served_model_name=TARGET_ID, tokenizer_path=TARGET_ID, model_type="kimi_k25"
    )
    (answers / "model_info.json").write_text(json.dumps(model))
    models = json.loads((answers / "v1_models.json").read_text())
    models["data"][0].update(id=TARGET_ID, root=TARGET_ID, max_model_len=262144)
    (answers / "v1_models.json").write_text(json.dumps(models))
    site = package.parent
    (site / "ddprobe_test_server.py").write_text(SERVER)
    (site / "zz_ddprobe_test_server.pth").write_text("import ddprobe_test_server\n")

    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "HF_HOME": str(root / "models"),
        "HF_TOKEN": "hf_canaryCANARYcanaryCANARYcanary1234",
        "DDPROBE_TEST_ANSWERS": str(answers),
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
    }
    python = str(root / "opt" / "sglang" / "bin" / "python")
    command = [python, "-m", "sglang.launch_server", *launch]
    server = subprocess.Popen(command, env=environment, cwd=root, stdin=subprocess.DEVNULL)
    ranks: list[int] = []
    try:
        _wait_for(port, server)
        ranks = _children(server.pid)
        yield GpuHost(root, package, old_package, drafter, target, port, server.pid, tuple(ranks))
    finally:
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        server.kill()
        server.wait()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert server.poll() is None, "the test server died at start"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the test server does not listen")
