"""Where a model's folder is looked for, whoever named it and however: pure, without a host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddprobe.errors import Unanswered
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Command, CommandResult, Evidence, Host
from ddprobe.probes.discovery import Discovery
from ddprobe.probes.draft import _locate, _wanted
from ddprobe.probes.draft._wanted import Wanted

HOST = Host(name="gpu1")


def server(pid: int = 7, **known: object) -> ServerProcess:
    fields: dict[str, object] = {"cwd": "/srv/app", "user": "serve", **known}
    return ServerProcess(engine="sglang", pid=pid, argv=("sglang", "serve"), **fields)  # type: ignore[arg-type]


def arguments(process: ServerProcess, **values: object) -> ServerArgs:
    return ServerArgs(
        engine="sglang", origin="command line", server=process.name, values=tuple(values.items())
    )


def wanted(
    *processes: ServerProcess, args: tuple[ServerArgs, ...] = (), drafter: str = "", host: Host = HOST
) -> tuple[Wanted, ...]:
    return _wanted.wanted({"drafter": drafter, "target": ""}, host, Discovery(servers=processes), args)


def answer(*argv: str, key: str, stdout: str = "", code: int = 0) -> CommandResult:
    question = Command(key=key, argv=argv, exits=(0, 1, 2))
    return CommandResult(question=question, exit_code=code, stdout=stdout.encode())


def listed(folder: str, *names: str) -> CommandResult:
    return answer(
        "ls", key=_locate.folder_key(folder), stdout="\n".join(names) + "\n", code=0 if names else 2
    )


def evidence(*results: CommandResult) -> Evidence:
    return Evidence(HOST, results)


def asked(want: Wanted, known: Evidence | None = None) -> list[str]:
    return [str(question) for question in _locate.lookups(want, known or evidence())]


SPECULATES = {
    "speculative_algorithm": "DFLASH",
    "speculative_draft_model_path": "org/draft",
    "model_path": "/m/target",
}


# --- who names it ------------------------------------------------------------------------------------------


def test_a_server_names_its_models() -> None:
    process = server()
    found = wanted(process, args=(arguments(process, **SPECULATES),))
    assert [(w.role, w.reference, w.servers) for w in found] == [
        ("drafter", "org/draft", ("sglang pid 7",)),
        ("target", "/m/target", ("sglang pid 7",)),
    ]
    assert found[0].origin == "--speculative-draft-model-path of sglang pid 7"


def test_a_drafter_that_is_not_used_is_not_looked_at() -> None:
    process = server()
    given = {**SPECULATES, "speculative_algorithm": None}
    assert [w.role for w in wanted(process, args=(arguments(process, **given),))] == ["target"]


def test_by_hand_counts_before_the_inventory_and_that_before_the_server() -> None:
    process = server()
    args = (arguments(process, **SPECULATES),)
    inventory = Host(name="gpu1", drafter="/inv/draft")
    assert wanted(process, args=args, drafter="/my/draft", host=inventory)[0].reference == "/my/draft"
    by_inventory = wanted(process, args=args, host=inventory)[0]
    assert (by_inventory.reference, by_inventory.origin) == ("/inv/draft", "drafter in the inventory")
    assert by_inventory.servers == ("sglang pid 7",)


def test_by_hand_with_two_servers_belongs_to_the_one_that_says_the_same_or_to_none() -> None:
    one, two = server(7), server(8)
    args = (
        arguments(one, **SPECULATES),
        arguments(two, **{**SPECULATES, "speculative_draft_model_path": "org/b"}),
    )
    same = [w for w in wanted(one, two, args=args, drafter="org/b") if w.role == "drafter"]
    assert [(w.reference, w.servers) for w in same] == [("org/draft", (one.name,)), ("org/b", (two.name,))]
    other = [w for w in wanted(one, two, args=args, drafter="org/c") if w.role == "drafter"]
    assert [(w.reference, w.servers) for w in other] == [
        ("org/draft", (one.name,)),
        ("org/b", (two.name,)),
        ("org/c", ()),
    ]


def test_by_hand_is_never_for_a_server_of_gguf_files() -> None:
    one, llama = server(7), replace(server(8), engine="llamacpp")
    args = (
        arguments(one, **SPECULATES),
        replace(
            arguments(llama, speculative_draft_model_path="d.gguf", model_path="t.gguf"), engine="llamacpp"
        ),
    )
    drafters = [w for w in wanted(one, llama, args=args, drafter="/my/draft") if w.role == "drafter"]
    assert [(w.reference, w.servers) for w in drafters] == [
        ("/my/draft", (one.name,)),
        ("d.gguf", (llama.name,)),
    ]
    assert drafters[1].origin == "--model-draft of llamacpp pid 8"


def test_one_model_of_two_servers_is_looked_at_once() -> None:
    one, two = server(7), server(8)
    args = (arguments(one, **SPECULATES), arguments(two, **SPECULATES))
    found = wanted(one, two, args=args)
    assert [(w.role, w.servers) for w in found] == [
        ("drafter", (one.name, two.name)),
        ("target", (one.name, two.name)),
    ]
    apart = wanted(one, server(8, root="/proc/8/root"), args=args)
    assert len(apart) == 4


def test_keys_are_readable_and_never_the_same_for_different_models() -> None:
    names = [
        "org/draft",
        "org--draft",
        "org/dräft",
        "org/dr.ft",
        "x" * 100,
        "y" + "x" * 99,
        "org draft",
        "org/draft/",
    ]
    keys = {Wanted("drafter", name, "").key for name in names}
    assert len(keys) == len(names) - 1  # a final slash names the same
    assert Wanted("drafter", "z-lab/Qwen3-4B", "").key == "model-z-lab--Qwen3-4B"


# --- where to look -----------------------------------------------------------------------------------------


def want(
    reference: str, process: ServerProcess | None = None, revision: str = "", folder: str = ""
) -> Wanted:
    names = (process.name,) if process else ()
    return Wanted("drafter", reference, "", revision, names, process, folder)


@pytest.mark.parametrize(
    ("environment", "cache"),
    [
        ({"HF_HUB_CACHE": "/c/hub", "HF_HOME": "/c/home"}, "/c/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "/c/old"}, "/c/old"),
        ({"HF_HOME": "/c/home/"}, "/c/home/hub"),
        ({"XDG_CACHE_HOME": "/c/xdg"}, "/c/xdg/huggingface/hub"),
        ({"HOME": "/home/serve"}, "/home/serve/.cache/huggingface/hub"),
        ({"HF_HOME": "~/models", "HOME": "/home/serve"}, "/home/serve/models/hub"),
        ({"HF_HUB_CACHE": "~", "HOME": "/home/serve"}, "/home/serve"),
        ({"HF_HUB_CACHE": "hub"}, "/srv/app/hub"),
        ({"HF_HOME": "[not kept]", "HOME": "/home/serve"}, "/home/serve/.cache/huggingface/hub"),
    ],
)
def test_the_cache_that_the_environment_names(environment: dict[str, str], cache: str) -> None:
    model = want("org/draft", server(environment=tuple(environment.items())))
    assert asked(model)[1:] == [
        f"cat {cache}/models--org--draft/refs/main",
        f"ls -1 -A {cache}/models--org--draft/snapshots",
        f"ls -1 -A {cache}",
    ]


def test_a_container_is_looked_into_through_its_root() -> None:
    process = server(root="/proc/7/root", environment=(("HF_HOME", "/hf"),))
    assert asked(want("org/draft", process, "v2"))[:2] == [
        "ls -1 -A /proc/7/root/srv/app/org/draft",
        "cat /proc/7/root/hf/hub/models--org--draft/refs/v2",
    ]
    assert _locate.place(want("/m/x", process), evidence()).folder == "/proc/7/root/m/x"


def test_the_home_of_a_server_whose_environment_is_not_seen() -> None:
    passwd = "root:x:0:0::/root:/bin/sh\nserve:x:990:990:a:/var/lib/serve:/bin/false\n"
    known = evidence(
        answer("cat", "/etc/passwd", key="passwd", stdout=passwd), answer("id", key="user", stdout="me\n")
    )
    model = want("org/draft", server(environment_seen=False))
    assert "cat /var/lib/serve/.cache/huggingface/hub/models--org--draft/refs/main" in asked(model, known)
    numbered = want("org/draft", server(environment_seen=False, user="990"))
    assert "cat /var/lib/serve/.cache/huggingface/hub/models--org--draft/refs/main" in asked(numbered, known)


def test_a_download_folder_comes_first() -> None:
    process = server(environment=(("HF_HOME", "/hf"),))
    assert [q for q in asked(want("org/draft", process, folder="/dl")) if q.startswith("cat")] == [
        "cat /dl/models--org--draft/refs/main",
        "cat /hf/hub/models--org--draft/refs/main",
    ]


def test_nothing_has_to_be_looked_up_for_an_absolute_folder() -> None:
    assert asked(want("/m/draft", server())) == []


# --- what was found ----------------------------------------------------------------------------------------

HUB = "/hf/hub"
MODEL = f"{HUB}/models--org--draft"
PROCESS = server(environment=(("HF_HOME", "/hf"),))


def ref(model: Wanted, commit: str) -> CommandResult:
    return answer("cat", key=f"{model.key}-ref-0", stdout=commit, code=0 if commit else 1)


def test_the_snapshot_that_the_ref_names() -> None:
    model = want("org/draft", PROCESS)
    place = _locate.place(model, evidence(ref(model, "abc\n"), listed(f"{MODEL}/snapshots", "abc", "def")))
    assert (place.folder, place.revision) == (f"{MODEL}/snapshots/abc", "abc")
    assert place.how == "refs/main in /hf/hub (HF_HOME of sglang pid 7)"


def test_a_revision_that_is_a_commit() -> None:
    model = want("org/draft", PROCESS, "def")
    place = _locate.place(model, evidence(ref(model, ""), listed(f"{MODEL}/snapshots", "abc", "def")))
    assert place.folder == f"{MODEL}/snapshots/def"


def test_one_snapshot_without_ref() -> None:
    model = want("org/draft", PROCESS)
    place = _locate.place(model, evidence(ref(model, ""), listed(f"{MODEL}/snapshots", "abc")))
    assert "the only snapshot" in place.how


def test_several_snapshots_without_ref_are_dated() -> None:
    model = want("org/draft", PROCESS)
    known = evidence(ref(model, ""), listed(f"{MODEL}/snapshots", "abc", "def"))
    (question,) = _locate.newest(model, known)
    assert str(question) == f"stat -c %Y %n {MODEL}/snapshots/abc {MODEL}/snapshots/def"
    times = answer("stat", key=question.key, stdout=f"20 {MODEL}/snapshots/abc\n10 {MODEL}/snapshots/def\n")
    place = _locate.place(model, Evidence(HOST, (*known.results, times)))
    assert place.folder == f"{MODEL}/snapshots/abc"
    assert "the newest of 2 snapshots" in place.how


def test_a_folder_beside_the_server_counts_before_the_cache() -> None:
    model = want("org/draft", PROCESS)
    known = evidence(
        listed("/srv/app/org/draft", "config.json"), ref(model, "abc"), listed(f"{MODEL}/snapshots", "abc")
    )
    assert _locate.place(model, known).folder == "/srv/app/org/draft"


def test_a_path_to_the_file_itself() -> None:
    place = _locate.place(want("/m/draft/config.json"), evidence())
    assert (place.folder, place.file) == ("/m/draft", "config.json")


def test_a_relative_folder_of_a_server_whose_own_is_not_seen_may_be_one() -> None:
    process = server(cwd="", environment=(("HF_HOME", "/hf"),))
    with pytest.raises(Unanswered) as caught:
        _locate.place(want("models/draft", process), evidence(listed(HUB)))
    assert (
        "whether it is a folder beside the one that sglang pid 7 runs in cannot be seen"
        in caught.value.reason
    )


@pytest.mark.parametrize(
    ("reference", "results", "sentence"),
    [
        (
            "org/draft",
            [
                listed(HUB, "models--org--draft-v2", "models--other--x", "version.txt"),
                listed(f"{MODEL}/snapshots"),
            ],
            "org/draft is not in /hf/hub (HF_HOME of sglang pid 7), which holds org/draft-v2, other/x",
        ),
        ("org/draft", [listed(HUB)], "which cannot be listed"),
        ("./models/x", [listed("/srv/app/models/x")], "/srv/app/models/x does not exist"),
        ("/m/draft.gguf", [], "is a GGUF file"),
        ("~/draft", [], "neither an absolute path nor a hub id"),
        ("../../etc", [listed("/etc")], "neither an absolute path nor a hub id"),
    ],
)
def test_what_is_not_there_says_what_is(reference: str, results: list[CommandResult], sentence: str) -> None:
    model = want(reference, PROCESS)
    with pytest.raises(Unanswered) as caught:
        _locate.place(model, evidence(*results))
    assert sentence in caught.value.reason
