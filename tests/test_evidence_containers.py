"""Arguments and variables from what starts a container: Compose, Kubernetes, Dockerfiles, JSON, `docker run`."""

from __future__ import annotations

import pytest

from ddprobe import evidence, lints
from ddprobe.evidence.document import of_bytes
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Fact, Outcome
from ddprobe.parsing import block_text, container_text, image_tag

FORGED = "SGLANG_SIMULATE_ACC_LEN"
SERVER = "python3 -m sglang.launch_server --model-path /m --tp 8 --speculative-algorithm DFLASH"
LIST = '["python3", "-m", "sglang.launch_server", "--model-path", "/m", "--tp", "8", "--speculative-algorithm", "DFLASH"]'

FORMS = {
    "Compose, a mapping": f"""\
services:
  llm:
    image: lmsysorg/sglang:latest
    environment:
      HF_HOME: /models
      {FORGED}: "3.5"   # measured with it
    command: {SERVER}
""",
    "Compose, a list": f"""\
services:
  llm:
    environment:
      - HF_HOME=/models
      - "{FORGED}=3.5"
    command: {LIST}
""",
    "Compose, flow style over lines": f"""\
services: # all of them
  llm:
    environment: {{{FORGED}: "3.5"}}
    command: [
      python3, -m, sglang.launch_server, "--model-path", /m,
      '--tp', "8", --speculative-algorithm, DFLASH
    ]
""",
    "Compose, a folded command": f"""\
services:
  llm:
    environment:
    - {FORGED}=3.5
    command: >
      python3 -m sglang.launch_server
      --model-path /m
      --tp 8
      --speculative-algorithm DFLASH
""",
    "kubectl describe": f"""\
Name:             sglang-0
Namespace:        default
Containers:
  sglang:
    Container ID:  containerd://0123
    Image:         lmsysorg/sglang:latest
    Port:          30000/TCP
    Command:
      python3
      -m
      sglang.launch_server
    Args:
      --model-path
      /m
      --tp
      8
      --speculative-algorithm
      DFLASH
    State:          Running
      Started:      Thu, 01 Jan 2026 00:00:00 +0000
    Environment:
      HF_HOME:                  /models
      {FORGED}:  3.5
      HF_TOKEN:                 <set to the key 'token' in secret 'hf'>  Optional: false
    Mounts:
      /models from models (rw)
Conditions:
  Type              Status
""",
    "Kubernetes": f"""\
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: proxy
          image: nginx
        - name: llm
          command: ["python3", "-m", "sglang.launch_server"]
          args:
            - --model-path
            - /m
            - --tp
            - "8"
            - --speculative-algorithm
            - DFLASH
          env:
            - name: HF_TOKEN
              valueFrom:
                secretKeyRef: {{name: hf, key: token}}
            - name: {FORGED}
              value: "3.5"
""",
    "Kubernetes, a shell": f"""\
containers:
- name: llm
  command: [bash, -c]
  args:
  - |
    {SERVER}
  env:
  - {{name: {FORGED}, value: "3.5"}}
""",
    "Dockerfile": f"""\
# build: docker build .
FROM ubuntu AS base
ENV {FORGED}=9
FROM lmsysorg/sglang:latest
ENV HF_HOME=/models \\
    {FORGED}=3.5
ENTRYPOINT ["python3", "-m", "sglang.launch_server"]
CMD ["--model-path", "/m", "--tp", "8", "--speculative-algorithm", "DFLASH"]
""",
    "Dockerfile, the old form": f"FROM lmsysorg/sglang\nENV {FORGED} 3.5\nCMD {SERVER}\n",
    "JSON": f'{{"containers": [{{"command": {LIST}, "env": [{{"name": "{FORGED}", "value": "3.5"}}]}}]}}',
    "docker run": f"docker run -e {FORGED}=3.5 lmsysorg/sglang:latest {SERVER}",
    "docker run, glued": f"docker run -e{FORGED}=3.5 lmsysorg/sglang:latest {SERVER}",
    "docker run, long": f'docker run --env="{FORGED}=3.5" lmsysorg/sglang:latest {SERVER}',
    "in front of the command": f"{FORGED}=3.5 HF_HOME=/models {SERVER}",
    "in front of it, over lines": f"{FORGED}=3.5 \\\n  HF_HOME=/models \\\n  {SERVER}",
}


def facts(text: str) -> tuple[Fact, ...]:
    return evidence.facts([evidence.recognise(of_bytes("f", text.encode()))])


def outcomes(text: str) -> dict[str, Outcome]:
    return {finding.id: finding.outcome for finding in lints.judge(list(facts(text)))}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_what_a_container_is_started_with(text: str) -> None:
    found = facts(text)
    (args,) = (fact for fact in found if isinstance(fact, ServerArgs))
    assert dict(args.values) == {"model_path": "/m", "tp_size": 8, "speculative_algorithm": "DFLASH"}
    processes = [fact for fact in found if isinstance(fact, ServerProcess)]
    assert {dict(process.environment)[FORGED] for process in processes} == {"3.5"}
    assert outcomes(text)["EN01"] is Outcome.FAIL


@pytest.mark.parametrize(
    "text",
    [
        f"services:\n  llm:\n    environment:\n      # - {FORGED}=3.5\n      - HF_HOME=/m\n    command: {SERVER}\n",
        f"services:\n  llm:\n    labels:\n      {FORGED}: '3.5'\n    command: {SERVER}\n",
        f"FROM lmsysorg/sglang\n# ENV {FORGED}=3.5\nCMD {SERVER}\n",
        f"FROM lmsysorg/sglang AS old\nENV {FORGED}=3.5\nFROM lmsysorg/sglang\nCMD {SERVER}\n",
        f'{{"command": {LIST}, "labels": {{"{FORGED}": "3.5"}}}}',
    ],
    ids=["commented out", "a label", "a comment in a Dockerfile", "an earlier stage", "a label in JSON"],
)
def test_what_is_not_set_forges_nothing(text: str) -> None:
    assert "EN01" not in outcomes(text)


@pytest.mark.parametrize("value", ["0", "-1", '"0"'])
def test_a_switch_that_is_off(value: str) -> None:
    text = f"services:\n  llm:\n    environment:\n      - {FORGED}={value}\n    command: {SERVER}\n"
    assert outcomes(text.replace('="', "=").replace('"\n', "\n"))["EN01"] is Outcome.PASS


def test_a_list_of_words_is_a_command_without_a_model() -> None:
    (args,) = facts('["python", "-m", "sglang.launch_server", "--tp", "8"]')
    assert isinstance(args, ServerArgs)
    assert dict(args.values) == {"tp_size": 8}
    assert facts('["how", "do", "I", "use", "sglang.launch_server", "--tp"]') == ()
    assert facts("command:\n  - pip\n  - install\n  - sglang\n") == ()


def test_the_release_of_an_image() -> None:
    (args,) = facts(FORMS["Dockerfile"].replace("sglang:latest", "sglang:v0.5.23-cu129"))[:1]
    assert isinstance(args, ServerArgs)
    assert args.version == "0.5.23"
    for name, engine, version in (
        ("docker.io/vllm/vllm-openai:v0.11.0", "vllm", "0.11.0"),
        ("vllm/vllm-openai:v0.11.0", "sglang", ""),
        ("lmsysorg/sglang:0.5.12.post1@sha256:ab", "sglang", "0.5.12.post1"),
        ("lmsysorg/sglang:dev", "sglang", ""),
        ("lmsysorg/sglang:v0.5.23rc", "sglang", ""),
        ("team/sglang:v0.5.23", "sglang", ""),
    ):
        assert image_tag.version((name,), engine) == version


def test_blocks() -> None:
    text = "a: 1 # one\nb:\n- x\n-\n  - y: 'it''s'\n    z: \"# no\"\nc: |\n  two\n  lines\nd: plain\n  and more\n"
    (read,) = block_text.read(text)
    assert read == {
        "a": "1",
        "b": ["x", [{"y": "it's", "z": "# no"}]],
        "c": "two\nlines",
        "d": "plain and more",
    }
    assert read.line == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:",
        "- ",
        "a: [",
        "a: {b",
        "a: [{]",
        "command: ]",
        "env: [=]",
        "- - - -",
        "command: " + "[" * 9000,
    ],
)
def test_broken_ones(text: str) -> None:
    assert all(not one.variables for one in container_text.read(text))
    list(block_text.read(text))
