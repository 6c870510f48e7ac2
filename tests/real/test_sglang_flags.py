"""The flags of two real sglang releases, and what is made of them when they are whole and when they are cut short."""

from __future__ import annotations

import re
import zipfile

import pytest

from ddprobe.engines import TABLE
from tests.real import gpuhost

SGLANG = TABLE["sglang"]
_FIELD = re.compile(r"^    ([a-z][a-z0-9_]+): A\[", re.MULTILINE)
_ARGUMENT = re.compile(r"add_argument\(\s*\"--([a-z][a-z0-9-]+)\"")


def flags_of(version: str) -> set[str]:
    """Every flag that a release names in its source, without dashes."""
    found: set[str] = set()
    with zipfile.ZipFile(gpuhost.wheel(version)) as archive:
        for name in archive.namelist():
            if name == "sglang/srt/server_args.py" or name.startswith("sglang/srt/arg_groups/fields/"):
                text = archive.read(name).decode()
                found |= set(_ARGUMENT.findall(text)) | {f.replace("_", "-") for f in _FIELD.findall(text)}
    return found


def given(flag: str) -> dict[str, object]:
    return SGLANG.given(("python", "-m", "sglang.launch_server", f"--{flag}=x"))


@pytest.mark.parametrize("version", ["0.5.12", "0.5.23"])
def test_a_whole_flag_is_never_taken_for_a_longer_one(version: str) -> None:
    flags = flags_of(version)
    assert len(flags) > 300
    known = SGLANG.dialect.aliases
    wrong = {
        flag: given(flag) for flag in flags if set(given(flag)) != {known.get(flag, flag.replace("-", "_"))}
    }
    assert wrong == {}


@pytest.mark.parametrize("version", ["0.5.12", "0.5.23"])
def test_what_tells_a_flag_from_all_others_is_that_flag(version: str) -> None:
    """As argparse reads what is cut short: where it means one flag, we mean that one, or keep the word as it is."""
    known = SGLANG.dialect.aliases
    flags = flags_of(version) | known.keys() - {"speculative-draft"}
    taken = set()
    for flag in flags:
        for end in range(4, len(flag)):
            cut = flag[:end]
            if cut in flags | known.keys() or sum(other.startswith(cut) for other in flags) > 1:
                continue
            (name,) = given(cut)
            assert name in (cut.replace("-", "_"), known.get(flag, flag.replace("-", "_"))), cut
            taken.add(name)
    assert set(SGLANG.dialect.shortened) & {flag.replace("-", "_") for flag in flags} <= taken
    assert set(given("speculative-algo")) == {"speculative_algorithm"}
