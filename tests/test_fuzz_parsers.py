"""Every parser, and every engine's reading, fed with recordings that were damaged: no crash, no hang, no flood.

What a parser may raise is what it says it raises. Times are the processor's, so that a busy machine changes nothing.
"""

from __future__ import annotations

import json
import math
import pkgutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddprobe import engines, parsing, reportjson
from ddprobe.engines import sglang_reading
from ddprobe.engines.generation import Serving
from ddprobe.errors import Unanswered, UsageError
from ddprobe.facts import ModelConfig, ServerProcess
from ddprobe.model import Chunk, HttpRequest, HttpResult
from ddprobe.parsing import (
    accept_rates,
    acceptance,
    acceptance_lines,
    amd_smi,
    benchmark_text,
    block_text,
    bounded_json,
    config_fields,
    container_text,
    dcgm_dmon,
    decode_log,
    environment_text,
    file_status,
    gguf_metadata,
    grep_output,
    image_tag,
    json_in_part,
    launch_text,
    lenient_json,
    line_ranges,
    log_lines,
    model_config,
    model_role,
    nvidia_cells,
    nvidia_proc,
    nvidia_smi,
    pci,
    posix_ere,
    proc,
    prometheus,
    python_repr,
    python_symbols,
    safetensors,
    server_args,
    shell_words,
    sizes,
    source_code,
    source_lines,
    source_paths,
    source_text,
    startup_lines,
    table_text,
    tensor_names,
    version,
    version_text,
    xid,
)
from tests.test_hostile_answers import ANSWERS, ASKED, STATES, measured

DATA = Path(__file__).parent / "data"
SECONDS = 2.0
"""Of the processor, for one call; all take milliseconds."""
FUZZ = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# --- damage ------------------------------------------------------------------------------------------------

INSERTED = (
    b"\0", b"\r", b"\x1b[31m", b"\x7f", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", "\u202e".encode(), "\u0663".encode(),
    "²".encode(), b"\\ud800", b"\\", b'"', b"'", b"{", b"}", b"[", b"]", b"(", b",", b":", b"=", b"\n", b"\n\n", b" ",
    b"-1", b"NaN", b"Infinity", b"1e999", b"null", b"true", b"/", b"|", b"\xef\xbb\xbf",
)  # fmt: skip
NUMBERS = (
    b"0",
    b"-1",
    b"9" * 19,
    b"9" * 400,
    b"9" * 5000,
    b"1e308",
    b"-1e308",
    b"0x10",
    b"1_000",
    b"0.0000001",
)
MOST = 60_000


@dataclass(frozen=True, slots=True)
class Damage:
    """One change: what is done, where (a share of the length), and to how much."""

    kind: str
    where: int
    length: int
    pick: int

    def done(self, data: bytes) -> bytes:
        at = self.where * len(data) // 1000
        end = min(len(data), at + self.length)
        piece, before, after = data[at:end], data[:at], data[end:]
        if self.kind == "flip" and data:
            at = min(at, len(data) - 1)
            return data[:at] + bytes([data[at] ^ (1 << self.pick % 8)]) + data[at + 1 :]
        if self.kind == "cut":
            return before
        if self.kind == "drop":
            return before + after
        if self.kind == "twice":
            return before + piece + piece + after
        if self.kind == "many" and piece:
            return before + piece * min(3000, MOST // len(piece)) + after
        if self.kind == "insert":
            return before + INSERTED[self.pick % len(INSERTED)] + data[at:]
        if self.kind == "number":
            return _another_number(data, at, NUMBERS[self.pick % len(NUMBERS)])
        if self.kind == "deep":
            opening, closing = ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"))[self.pick % 3]
            depth = (30, 300, 900, 5000)[self.pick % 4]
            return before + opening * depth + (piece or b"1") + closing * depth + after
        if self.kind == "encoded":
            codec = ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "utf-7")[self.pick % 5]
            return data.decode("utf-8", "replace").encode(codec)
        if self.kind == "line twice":
            start = data.rfind(b"\n", 0, at) + 1
            stop = data.find(b"\n", at) + 1 or len(data)
            return data[:stop] + data[start:stop] + data[stop:]
        return data


def _another_number(data: bytes, at: int, number: bytes) -> bytes:
    """The data with the first number from there on replaced."""
    start = next((n for n in range(at, len(data)) if data[n : n + 1].isdigit()), None)
    if start is None:
        return data + number
    stop = start
    while stop < len(data) and data[stop : stop + 1].isdigit():
        stop += 1
    return data[:start] + number + data[stop:]


KINDS = ("flip", "cut", "drop", "twice", "many", "insert", "number", "deep", "encoded", "line twice")
damages = st.lists(
    st.builds(
        Damage, st.sampled_from(KINDS), st.integers(0, 1000), st.integers(1, 64), st.integers(0, 10**6)
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, done: Iterable[Damage]) -> bytes:
    for each in done:
        data = each.done(data)[: 4 * MOST]
    return data


def lossy(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- parsers -----------------------------------------------------------------------------------------------

SGLANG_SAID = (
    b"[2026-11-30 15:48:22 TP0] Decode batch, #running-req: 1, #token: 13, token usage: 0.00, accept len: 1.75, accept "
    b"rate: 0.25, cuda graph: True, gen throughput (token/s): 61.36, #queue-req: 0\n"
    b"[2026-11-30 15:47:10] server_args=ServerArgs(model_path='/m', tp_size=8, sizes=[1, 2], mode=<M.N: 'null'>)\n"
    b"[2026-11-30 15:47:30] Initialized DFLASH draft runner. attention_backend=flashinfer, model=DFlashDraftModel, "
    b"block_size=8, draft_window_size=None, x\n"
    b'{"log":"[2026-11-30 15:48:23 TP0] Decode batch, #running-req: 1, accept len: 1.00\\n","stream":"stderr"}\n'
)
OTHERS_SAID = (
    b"(APIServer pid=7) INFO 11-30 15:35:08 [loggers.py:259] SpecDecoding metrics: Mean acceptance length: 3.79, "
    b"Accepted throughput: 19.80 tokens/s, Accepted: 198 tokens, Drafted: 355 tokens, Per-position acceptance rate: "
    b"0.930, 0.930, Avg Draft acceptance rate: 55.8%\n"
    b"INFO non-default args: {'model_tag': '/m', 'speculative_config': {'method': 'ngram', 'n': [1, (2, 3)]}}\n"
    b"INFO Initializing a V1 LLM engine (v0.32.0) with config: model='/m', speculative_config=None, x=torch.bf16,\n"
    b"1.02.003.004 I slot print_timing: id  0 | task 1 | draft acceptance = 0.56790 (   46 accepted /    81 generated), "
    b"mean len =  3.71\n"
    b"DFLASH_DDTREE verify completed. commit_lens=[3, 1]\navg_commit_len=1.00 avg_accepted_depth=3.00\n"
    b"Parameter model.layers.61.eh_proj.weight not found in params_dict\n"
)
LAUNCHED = (
    b"CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path /m \\\n  --tp=4 --mem 0.8 "
    b'--json-model-override-args \'{"a": [1]}\' --trust-remote-code 2>&1 | tee "$HOME/log"\n'
    b'Environment="VLLM_USE_V1=1" "HF_HOME=/models"\nexport SGLANG_SIMULATE_ACC_LEN="3.5"\nHOME=/root\n'
)
DRAFTER = json.dumps(
    {
        "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "num_hidden_layers": 6, "hidden_size": 7168,
        "block_size": 8, "max_position_embeddings": 262144, "rope_theta": 1e6, "eos_token_id": [1, 2],
        "rope_scaling": {"rope_type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
        "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 2048, "head_dim": 128,
        "dflash_config": {"target_layer_ids": [1, 12, 24], "mask_token_id": 163838, "mask_token": {"content": "m"}},
        "quantization_config": {"quant_method": "fp8", "bits": 8, "ignore": ["lm_head"]},
        "added_tokens_decoder": {"151643": {"content": "x"}},
    },
    indent=1,
).encode()  # fmt: skip
GGUF = (
    b'{"general.architecture": "dflash", "dflash.block_count": 5, "dflash.rope.scaling.factor": 4.0}\n'
    b"      4: UINT32     |        1 | dflash.block_count = 5\n"
    b"llama_model_loader: - kv   4:       dflash.block_count u32              = 5\n"
)
WEIGHTS = (
    b'{"metadata": {}, "weight_map": {"fc.weight": "a.safetensors", "layers.1.q.weight": "b.safetensors"}}\n'
    b"fc.weight  BF16  [5120, 25600]\nfc.weight torch.Size([5120, 25600]) torch.bfloat16\n"
)
_HEADER = b'{"fc.weight": {"dtype": "BF16", "shape": [7168, 43008], "data_offsets": [0, 4]}}'
PROCESSES = (
    b"/proc/41/cmdline\n/proc/4711/status:PPid:\t4600\n/proc/4711/status:Uid:\t1000\t1000\n"
    b"==> /proc/41/cmdline <==\nsglang::scheduler\0\0\n==> /proc/42/cmdline <==\nx\0--tp\0004\n"
    b"lrwxrwxrwx 1 alice alice 0 Nov 30 15:48 /proc/4711/cwd -> /home/alice/serve\n"
    b"dr-xr-xr-x 9 alice alice 0 Nov 30 15:48 /proc/4711\n"
    b"/proc/4711/cgroup:0::/system.slice/docker-" + b"3f2a9c1b" * 8 + b".scope\n"
    b"/proc/41/net/tcp:  0: 0100007F:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 48211 1\n"
    b"/proc/4711/fd:\nlrwx------ 1 a a 64 Nov 30 12:00 3 -> socket:[48211]\n"
    b"l-wx------ 1 a a 64 Nov 30 12:00 2 -> /srv/logs/sglang.log\n"
    b"l-wx------ 1 a a 64 Nov 30 12:00 /proc/41/fd/0 -> pipe:[12]\n"
    b"  |-- 172.17.0.2\n     /32 host LOCAL\n"
)
NVIDIA = (
    b"/proc/driver/nvidia/gpus/0000:17:00.0/information:Model: \t\t NVIDIA H200\n"
    b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 16:58:11 UTC 2026\n"
)
CELLS = (
    b"index, name, pci.bus_id, memory.used [MiB], memory.total [MiB], pstate\n"
    b"0, NVIDIA H200, 00000000:17:00.0, 71234 MiB, 143771 MiB, P0\n1, [GPU is lost], [N/A], 9 MiB, 8 MiB, ERR!\n"
)
QUERIED = (
    b"index, name, pci.bus_id, memory.used [MiB], clocks_event_reasons.active, persistence_mode\n"
    b"0, NVIDIA H200, 00000000:17:00.0, 71234 MiB, 0x0000000000000004, Enabled\n"
    b"GPU 0: NVIDIA H200 (UUID: GPU-7a1c)\n  MIG 1g.18gb     Device  0: (UUID: MIG-5c8f)\n"
    b"\t\x1b[4mGPU0\tGPU1\tNUMA Affinity\x1b[0m\nGPU0\t X \tNV18\t0-1\nGPU1\tNV18\t X \t1\nCUDA Version        : 12.8\n"
    b'Field "compute_cap" is not a valid field to query.\n'
)
BUS = (
    b"/sys/bus/pci/devices/0000:17:00.0/class:0x030200\n/sys/bus/pci/devices/0000:17:00.0/vendor:0x10de\n"
    b"/sys/bus/pci/devices/0000:17:00.0/current_link_speed:32.0 GT/s PCIe\n"
    b"/sys/bus/pci/devices/0000:17:00.0/current_link_width:16\n"
)
ROCM = json.dumps(
    {
        "card0": {"Card Series": "AMD Instinct MI300X", "GPU use (%)": "3", "VRAM Total Memory (B)": "206141652992"},
        "system": {"Driver version": "6.12.12"},
        "gpu_data": [{"gpu": 0, "asic": {"market_name": "x"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}],
    }
).encode()  # fmt: skip
KERNEL = (
    b"[ 8123.412345] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    b"2026-11-30T12:00:00+0000 gpu1 kernel: NVRM: Xid (PCI:0000:41:00): 13, pid=4801, name=python3, Graphics\n"
    b"[ 9001.000000] INFO: task nvidia-smi:91244 blocked for more than 120 seconds.\n"
    b"[ 9002.000000] amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!\n[1.0] pcieport 0000:00:01.0: AER: Corrected error\n"
)
GREPPED = (
    b"/v/dflash.py:212:def _commit(a):\n/v/dflash.py-213-    'x'\n--\n"
    b"grep: /v/x.py: Permission denied\ngrep: Unmatched ( or \\(\n"
)
SOURCE = (
    b"# -*- coding: utf-8 -*-\nimport re\n\nclass A(B):\n    @property\n    def f(self) -> int:\n        '''x'''\n"
    b"        if a:\n            return 1\n        elif b:\n            pass\n\nasync def g():\n    async def h(): ...\n"
)
NAMES = b"/v/sglang/srt/speculative/dflash_worker.py\n/v/sglang/__init__.py\n/v/sglang/srt/layers/x.so\n"
TYPED = b"sglang.srt.speculative.dflash_worker:1395-1450,212+7,40"
PACKAGE = "/v/sglang"
GIVEN_PATHS = frozenset({"/v/dflash.py", "/v/x.py"})


def _loads(data: bytes) -> Any:
    try:
        return lenient_json.read(data).value
    except lenient_json.NotJson:
        return None


def _mapping(data: bytes) -> dict[str, Any]:
    value = _loads(data)
    return value if isinstance(value, dict) else {}


def _model_config(data: bytes) -> Any:
    value = _mapping(data)
    read = model_config.read(value, {"rope_scaling": value, "text_config": value})
    fact = ModelConfig.of(read.fields, read.rope, role="drafter", path="/x/config.json")
    for release in ("", "0.5.10", "0.5.23"):
        sglang_reading.layers(fact, release)
        if fact.rope is not None:
            sglang_reading.amplitude(fact.rope, release)
    return fact


def _config_fields(data: bytes) -> Any:
    fields = config_fields.Fields(_mapping(data))
    for name in tuple(fields.top[0])[:20]:
        fields.integer(name)
        fields.boolean(name)
        fields.text(name)
        value, path = fields.find(name, name)
        fields.as_float(value, path)
        fields.integers(value, path)
        fields.texts(value, path)
    return [config_fields.plain(each) for each in fields.top[0].values()]


def _lines(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: [read(line) for line in lossy(data).split("\n")]


def _words(data: bytes) -> Any:
    words = tuple(lossy(data).split())
    return [
        (engine.given(words), server_args.parse(words, engine.dialect)) for engine in engines.TABLE.values()
    ]


def _proc(data: bytes) -> Any:
    text = lossy(data)
    lines = tuple(text.split("\n"))
    return (
        proc.pids(text), proc.statuses(text), proc.links(text), proc.owners(text), proc.by_pid(text), proc.words(text),
        proc.sections(text, ("/proc/41/cmdline", "/proc/42/cmdline")), proc.environment(text), proc.container(lines),
        proc.listeners(tuple(line.partition("tcp:")[2] for line in lines)), proc.sockets(text), proc.open_files(text),
        proc.standard_inputs(text), proc.local_addresses(lines),
    )  # fmt: skip


def _gguf(data: bytes) -> Any:
    of_json = gguf_metadata.of_json(_mapping(data.split(b"\n")[0]))
    of_lines = gguf_metadata.of_lines(lossy(data).split("\n"))
    for found in (of_json, of_lines):
        model_config.read(gguf_metadata.as_config(found))
        gguf_metadata.is_drafter(found)
    return of_lines


def _tensor_names(data: bytes) -> Any:
    lists = (
        tensor_names.of_json(_loads(data.split(b"\n")[0])),
        tensor_names.of_lines(lossy(data).split("\n")),
    )
    for listing in lists:
        if listing is not None:
            tensor_names.layers(listing.names)
            tensor_names.are_a_drafters(listing.names)
    return lists


def _python_repr(data: bytes) -> Any:
    text = lossy(data)
    return python_repr.read(text), python_repr.fields(text, text.find("(") + 1)


def _symbols(data: bytes) -> Any:
    outline = python_symbols.outline(lossy(data))
    return outline.note, outline.around(3), outline.named("f"), outline.near("A.f"), len(outline.symbols)


def _paths(data: bytes) -> Any:
    text = lossy(data)
    listed = source_paths.listed(text, PACKAGE)
    file = text[:200]
    source_paths.near_folders(file, listed)
    for check in (source_paths.check_glob, source_paths.check_file):
        try:
            check(file)
        except UsageError:
            continue
    return (
        listed, source_paths.find_words(PACKAGE, file), source_paths.guesses(file, PACKAGE), source_paths.near(file, listed),
        source_paths.ending_in(file, listed, PACKAGE), source_paths.folders_above(file), source_paths.language(file),
    )  # fmt: skip


def _source_text(data: bytes) -> Any:
    lines = source_text.lines(data, whole=False)
    assert "".join(lines.kept).count("\n") == data.count(b"\n")
    return lines.complete, source_text.is_binary(data), source_text.encoding(data), lines.text(1, 3)


def _ranges(data: bytes) -> Any:
    file, ranges = line_ranges.split_target(lossy(data)[:4000])
    return file, line_ranges.spell(line_ranges.merge(line_ranges.parse(ranges), 3))


def _grep(data: bytes) -> Any:
    text = lossy(data)
    return (
        list(grep_output.parse(text, GIVEN_PATHS)),
        grep_output.unread(text, GIVEN_PATHS),
        grep_output.complaint(text, GIVEN_PATHS),
    )


def _version(data: bytes) -> Any:
    text = lossy(data)
    return version.release(text), version.before(text, "0.5.13"), version.before("0.5.13", text)


def _size(data: bytes) -> Any:
    return sizes.short(sizes.size(lossy(data)[:200]))


def _moments(data: bytes) -> Any:
    lines = [log_lines.unwrapped(line) for line in lossy(data).split("\n")]
    return [log_lines.moment(line, 2026) for line in lines]


def _decode(data: bytes) -> Any:
    text = lossy(data)
    shown = list(decode_log.lines_with(text, "Decode batch"))
    found = [line for line in map(decode_log.decode_line, text.split("\n")) if line is not None]
    return len(shown), [
        (line.running, line.tokens, line.commit, line.rate, line.throughput, line.graph) for line in found
    ]


def _launch(data: bytes) -> Any:
    return [launch_text.of_line(line) for line in lossy(data).split("\n")]


def _shell(data: bytes) -> Any:
    lines = lossy(data).split("\n")
    return [shell_words.commands(line) for _, line in shell_words.logical_lines(lines)]


def _environment(data: bytes) -> Any:
    text = lossy(data)
    return environment_text.read(text), environment_text.leading(text.split())


def _samples(data: bytes) -> Any:
    assert all(math.isfinite(sample.value) for sample in prometheus.samples(lossy(data)))
    return prometheus.totals(lossy(data))


SAMPLED = b"""#Entity   SMACT        DRAMA        TENSO        POWER
ID                                               W
GPU 1     0.043        0.312        0.001        231.440
GPU 0     0.041        0.308        0.001        229.872
GPU 1     N/A          0.305        0.001        230.101
"""


def _nvidia_smi(data: bytes) -> Any:
    text = lossy(data)
    fields = ("index", "name", "pci.bus_id", "memory.used", "clocks_event_reasons.active", "persistence_mode")
    rows = nvidia_smi.rows(text, fields)
    assert all(set(row) == set(fields) for row in rows)
    numbers = [nvidia_smi.number(row["memory.used"]) for row in rows]
    assert all(number is None or math.isfinite(number) for number in numbers)
    told = [(nvidia_smi.bus(row["pci.bus_id"]), nvidia_smi.reasons(row[fields[4]])) for row in rows]
    others = nvidia_smi.instances(text), nvidia_smi.topology(text), nvidia_smi.cuda(text)
    return numbers, told, others, nvidia_smi.accepted(fields, text), nvidia_smi.complaint(text, "")


def _nvidia_cells(data: bytes) -> Any:
    rows = nvidia_smi.rows(
        lossy(data), ("index", "name", "pci.bus_id", "memory.used", "memory.total", "pstate")
    )
    return [(nvidia_cells.unread(row), nvidia_cells.used(row)) for row in rows]


def _pci(data: bytes) -> Any:
    text = lossy(data)
    return pci.with_links(pci.cards(text, text), text)


COMPOSED = b"""\
services: # all
  llm:
    image: "lmsysorg/sglang:v0.5.23"
    environment: {SGLANG_A: "1", B: [c, 'd']}
    command: [python3, -m, sglang.launch_server,
      --model-path, /m]
  other:
    env:
    - name: VLLM_X
      value: "2"
    args:
      - |
        vllm serve /m
        --port 1
      - - nested
"""
BENCHED = b"""\
============ Serving Benchmark Result ============
Accept length:                           1.04
---------------Speculative Decoding---------------
Drafts:                                  11234
Draft tokens:                            33702
Accepted tokens:                         4351
  Position 0:                            25.10
num_drafts: 4816
acceptance at token 0: 0.72
Speculative metrics: Draft acceptance rate: 0.6, Number of speculative tokens: 4, Number of accepted tokens: 2, \
Number of draft tokens: 53716, Number of emitted tokens: 34244.
n_predict = 371
n_accept  = 313
#questions: 80, Throughput: 276.30 token/s, Acceptance length: 5.36
"""
INSTALLED = b"sglang==0.5.23\nName: vllm\nVersion: 0.11.0\n| SGLang version | v0.5.23.post1 |\n"


PARSERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "acceptance_lines": (
        OTHERS_SAID,
        _lines(
            lambda line: (
                acceptance_lines.vllm_line(line),
                acceptance_lines.vllm_generated(line),
                acceptance_lines.llamacpp_line(line),
                acceptance_lines.llamacpp_task(line),
                acceptance_lines.llamacpp_seconds(line),
                acceptance_lines.tree_line(line),
                acceptance_lines.lifetimes(line),
            )
        ),
    ),
    "amd_smi": (ROCM, lambda data: (amd_smi.rocm(lossy(data)), amd_smi.amd(lossy(data), lossy(data)))),
    "benchmark_text": (BENCHED, lambda data: list(benchmark_text.read(lossy(data).split("\n")))),
    "block_text": (COMPOSED, lambda data: list(block_text.read(lossy(data)))),
    "bounded_json": (DRAFTER, lambda data: bounded_json.loads(lossy(data))),
    "config_fields": (DRAFTER, _config_fields),
    "container_text": (COMPOSED, lambda data: container_text.read(lossy(data))),
    "dcgm_dmon": (SAMPLED, lambda data: dcgm_dmon.rounds(lossy(data))),
    "decode_log": (SGLANG_SAID, _decode),
    "environment_text": (LAUNCHED, _environment),
    "file_status": (
        b"regular file|118874|644|root",
        lambda data: file_status.parse(lossy(data), lossy(data)),
    ),
    "gguf_metadata": (GGUF, _gguf),
    "grep_output": (GREPPED, _grep),
    "image_tag": (
        b"docker.io/lmsysorg/sglang:v0.5.23-cu129@sha256:ab",
        lambda data: image_tag.version(lossy(data).split(), "sglang"),
    ),
    "json_in_part": (DRAFTER[:-9], lambda data: json_in_part.fields(lossy(data))),
    "launch_text": (SGLANG_SAID + OTHERS_SAID, _launch),
    "lenient_json": (DRAFTER, lambda data: lenient_json.read(data).value),
    "line_ranges": (TYPED, _ranges),
    "log_lines": (SGLANG_SAID + OTHERS_SAID, _moments),
    "model_config": (DRAFTER, _model_config),
    "model_role": (DRAFTER, lambda data: model_role.role_of(_mapping(data))),
    "nvidia_proc": (
        NVIDIA,
        lambda data: (
            nvidia_proc.models(lossy(data)),
            nvidia_proc.driver(lossy(data)),
            nvidia_proc.cards(lossy(data)),
        ),
    ),
    "nvidia_cells": (CELLS, _nvidia_cells),
    "nvidia_smi": (QUERIED, _nvidia_smi),
    "pci": (BUS, _pci),
    "posix_ere": (rb"commit\(\)|[[:alpha:]]{1,3}(a|b)*\w$", lambda data: posix_ere.check(lossy(data)[:300])),
    "proc": (PROCESSES, _proc),
    "prometheus": ((DATA / "sglang-answers/0.5.23-ngram-metrics.txt").read_bytes(), _samples),
    "python_repr": (SGLANG_SAID, _python_repr),
    "python_symbols": (SOURCE, _symbols),
    "safetensors": (len(_HEADER).to_bytes(8, "little") + _HEADER, safetensors.tensors),
    "server_args": (LAUNCHED, _words),
    "shell_words": (LAUNCHED, _shell),
    "sizes": (b"1.5k", _size),
    "source_code": (SOURCE, lambda data: source_code.language(lossy(data))),
    "source_lines": (GREPPED, lambda data: source_lines.of_lines(lossy(data).split("\n"))),
    "source_paths": (NAMES, _paths),
    "source_text": (SOURCE, _source_text),
    "startup_lines": (
        SGLANG_SAID + OTHERS_SAID,
        _lines(
            lambda line: (
                startup_lines.read(line),
                startup_lines.bare(line),
                startup_lines.exception(line),
                startup_lines.rank(line),
            )
        ),
    ),
    "table_text": (
        b"context,accept_len\n1k,4.1\n128k,1.02\n",
        lambda data: [
            (table, [(table_text.number(c), table_text.size(c)) for row in table.rows for c in row])
            for table in table_text.tables(lossy(data), lambda head: "context" in head)
        ],
    ),
    "tensor_names": (WEIGHTS, _tensor_names),
    "version": (b"0.5.14.dev27+g1a2b", _version),
    "version_text": (INSTALLED, lambda data: list(version_text.read(lossy(data).split("\n")))),
    "xid": (KERNEL, lambda data: xid.lines(lossy(data))),
}
"""Module → what it reads, and how it is asked."""
OF_NUMBERS = {"acceptance", "accept_rates"}
"""Modules that read numbers, not text."""
DOCUMENTED = (UsageError, lenient_json.NotJson, safetensors.NotSafetensors)


def parsed(module: str, data: bytes) -> Any:
    """What the module makes of it, within time; the words with which it refuses it as it says it does."""
    began = time.process_time()
    try:
        found = PARSERS[module][1](data)
    except DOCUMENTED as refused:
        found = str(refused)
    except ValueError:
        assert module == "bounded_json"
        found = None
    assert time.process_time() - began < SECONDS
    return found


def test_no_parser_is_left_out() -> None:
    modules = {module.name for module in pkgutil.iter_modules(parsing.__path__)}
    assert modules == set(PARSERS) | OF_NUMBERS


@pytest.mark.parametrize("module", PARSERS)
@FUZZ
@given(done=damages)
def test_a_damaged_recording(module: str, done: list[Damage]) -> None:
    data = damaged(PARSERS[module][0], done)
    found = parsed(module, data)
    # What is found is never many times what came, and a report can hold it.
    assert len(reportjson.text(reportjson.encode(found))) < 40 * len(data) + 20_000


@pytest.mark.parametrize("module", PARSERS)
@FUZZ
@given(data=st.binary(max_size=400))
def test_noise(module: str, data: bytes) -> None:
    parsed(module, data)


@pytest.mark.parametrize("module", PARSERS)
def test_the_same_piece_over_and_over_takes_no_longer_than_its_length(module: str) -> None:
    recorded = PARSERS[module][0]
    words = list(dict.fromkeys(recorded.replace(b"\n", b" ").split(b" ")))[:24]
    for piece in (
        *words,
        b" ",
        b"[",
        b"{",
        b"(",
        b"'",
        b'"',
        b"1",
        b"a",
        b"\\",
        b"/",
        b": ",
        b"=",
        b"<",
        b"a.",
        b"1,",
    ):
        if piece:
            half = recorded[: len(recorded) // 2]
            for before in (b"", half):
                parsed(module, before + piece * (20_000 // len(piece)))


# --- numbers -----------------------------------------------------------------------------------------------

counts = st.one_of(
    st.none(), st.integers(0, 64), st.sampled_from([10**6, 10**12, 2**53, 10**30, 10**400, -1, -(10**400)])
)
figures = st.one_of(
    st.floats(), st.floats(0, 16), st.sampled_from([0.0, 1.0, 1.75, 0.33, 1e308, math.inf, math.nan])
)


@FUZZ
@given(a=counts, b=counts, c=counts, k=counts, figure=figures, other=figures)
def test_acceptance_of_any_numbers(
    a: int | None, b: int | None, c: int | None, k: int | None, figure: float, other: float
) -> None:
    found = [
        acceptance.from_counts(a, b, c, k),
        acceptance.from_length(figure, k, a),
        acceptance.from_rate(figure, other, a),
        acceptance.from_tokens(a or 0, b or 0, k),
        acceptance.from_timings(a or 0, b or 0, c or 0),
    ]
    for each in found:
        assert each.commit is None or (math.isfinite(each.commit) and each.commit >= 0)
        assert each.rate is None or math.isfinite(each.rate)
        each.agrees(figure)
    pairs = [accept_rates.Pair(figure, other), accept_rates.Pair(other, figure)]
    fits = accept_rates.formula(pairs)
    if fits is not None:
        assert fits.k is None or fits.k >= 1
        for pair in pairs:
            fits.correct_rate(pair)


# --- engines -----------------------------------------------------------------------------------------------


def answer(path: str, data: bytes) -> HttpResult:
    asked = HttpRequest(key="k", method="POST", path=path, base="http://127.0.0.1:1", body=b"{}", stream=True)
    half = len(data) // 2
    chunks = (Chunk(0.01, half), Chunk(0.02, len(data) - half))
    return HttpResult(question=asked, status=200, body=data, chunks=chunks, seconds=1.0)


@pytest.mark.parametrize("name", ANSWERS)
@FUZZ
@given(done=damages, speculating=st.booleans())
def test_a_damaged_answer_never_becomes_a_number_that_cannot_be(
    name: str, done: list[Damage], speculating: bool
) -> None:
    engine, k = ANSWERS[name]
    data = damaged((DATA / name).read_bytes(), done)
    way = engines.TABLE[engine].generation.ways[0]
    began = time.process_time()
    try:
        request, point = measured(engine, k, speculating, answer(way, data))
    except Unanswered:
        return
    assert time.process_time() - began < SECONDS
    assert point.commit_mean is None or 1 <= point.commit_mean <= k + 1
    assert request.output_tokens is None or 0 <= request.output_tokens <= 10 * ASKED
    assert len(request.error) < 2000
    reportjson.text(reportjson.encode([request, point]))


STATE_FILES = [(engine, path, name) for engine, known in STATES.items() for path, name in known.items()]


@pytest.mark.parametrize(("engine", "path", "name"), STATE_FILES)
@FUZZ
@given(done=damages)
def test_a_damaged_account_of_itself(engine: str, path: str, name: str, done: list[Damage]) -> None:
    data = damaged((DATA / name).read_bytes(), done)
    answers = {path: answer(path, data)}
    dialect = engines.TABLE[engine]
    began = time.process_time()
    state = dialect.state("http://127.0.0.1:1", answers)
    resolved = dialect.resolved(answers)
    serving = dialect.generation.serving(answers, [resolved] if resolved else [])
    claims = dialect.generation.claims(answers)
    assert time.process_time() - began < SECONDS
    assert isinstance(serving, Serving)
    assert all(math.isfinite(claim.value) for claim in claims)
    assert all(len(value) <= 1000 for _, value in state.details)
    reportjson.text(reportjson.encode([state, resolved, claims]))


@pytest.mark.parametrize("engine", engines.TABLE)
@FUZZ
@given(done=damages)
def test_damaged_counters(engine: str, done: list[Damage]) -> None:
    generation = engines.TABLE[engine].generation
    if generation.counters_path:
        name = {"llamacpp": "llamacpp/b10434-metrics.txt", "vllm": "vllm/metrics.txt"}[engine]
        metrics = answer("/metrics", damaged((DATA / name).read_bytes(), done))
        counters = generation.counters(metrics)
        assert counters is None or counters.drafts is None or math.isfinite(counters.drafts)


@pytest.mark.parametrize("engine", engines.TABLE)
@FUZZ
@given(done=damages)
def test_a_damaged_command_line(engine: str, done: list[Damage]) -> None:
    launcher = {
        "sglang": "sglang.launch_server",
        "vllm": "vllm.entrypoints.openai.api_server",
        "llamacpp": "",
    }
    first = ("llama-server",) if engine == "llamacpp" else ("python3", "-m", launcher[engine])
    words = (*first, *lossy(damaged(LAUNCHED, done)).split())
    found = engines.recognise(words)
    assert found is not None
    assert found.name == engine
    process = ServerProcess(
        engine=engine,
        pid=41,
        argv=words,
        user="root",
        environment=(("LLAMA_ARG_CTX_SIZE", words[-1]),),
    )
    reportjson.text(reportjson.encode(engines.command_line(process)))


# --- what was found so, each in its smallest form ------------------------------------------------------------


def test_nesting_within_what_python_reads_is_refused_all_the_same() -> None:
    deep = b"[" * 300 + b"]" * 300
    with pytest.raises(lenient_json.NotJson, match="column 257: nested deeper than 256 levels"):
        lenient_json.read(deep)
    with pytest.raises(ValueError, match="nested deeper than 256 levels"):
        bounded_json.loads('{"a":' * 257 + "1" + "}" * 257)
    fits = "[" * 256 + "]" * 256
    assert bounded_json.loads(fits) == lenient_json.read(fits.encode()).value
    assert len(bounded_json.loads("[" + "[]," * 300 + "[]]")) == 301
    assert server_args.value_of("a", deep.decode(), engines.TABLE["sglang"].dialect) == deep.decode()
    header = b'{"a":{"dtype":' + deep + b"}}"
    with pytest.raises(safetensors.NotSafetensors, match="not JSON"):
        safetensors.tensors(len(header).to_bytes(8, "little") + header)


def test_a_length_times_a_factor_beyond_all_bounds_is_unknown() -> None:
    read = model_config.read({"max_position_embeddings": 2**62, "rope_scaling": {"factor": 1e308}})
    assert read.fields["context_length"] is None


def test_ids_that_are_no_numbers_cost_their_process_alone() -> None:
    status = "/proc/41/status:PPid:\tx\n/proc/42/status:PPid:\t1\n/proc/42/status:Uid:\t0\n"
    assert proc.statuses(status) == {42: proc.Status(42, 1, 0)}
    assert proc.pids(f"/proc/{'9' * 5000}/cmdline\n/proc/7/cmdline") == (7,)
    assert proc.by_pid(f"/proc/{'9' * 5000}/cgroup:0::/\n/proc/7/cgroup:0::/") == {7: ("0::/",)}


def test_a_gpu_without_a_model_does_not_take_the_next_line_for_one() -> None:
    gpus = "/proc/driver/nvidia/gpus/{}/information:Model:{}\n"
    assert nvidia_proc.models(gpus.format(0, "") + gpus.format(1, " \t NVIDIA H200 ")) == ("NVIDIA H200",)


def test_a_version_of_endless_digits_is_none() -> None:
    assert version.release("1." + "9" * 5000) is None


@pytest.mark.parametrize(
    ("module", "data"),
    [
        ("proc", b"/proc/1/cgroup:" + b"docker" * 30_000),
        ("nvidia_proc", b"/proc/driver/nvidia/gpus/0/information:Model: x" + b" " * 200_000 + b"y\n"),
        ("server_args", b"a " * 400_000),
        ("lenient_json", b"[1_" * 100_000),
        ("prometheus", b"a{" + b'b="c",' * 100_000 + b'"'),
        ("python_symbols", b"-" * 100_000 + b"1"),
    ],
)
def test_long_and_hopeless(module: str, data: bytes) -> None:
    parsed(module, data)
