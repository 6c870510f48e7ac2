"""The words that start the shell: on the host itself, or within a container there."""

from __future__ import annotations

import re

from ddprobe.errors import UsageError
from ddprobe.model import Host

SHELL = ("/bin/sh", "-s")
_RUNTIMES: dict[str, tuple[str, ...]] = {
    "docker": ("docker", "exec", "-i"),
    "podman": ("podman", "exec", "-i"),
    "kubectl": ("kubectl", "exec", "-i"),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\Z")
_POD = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}/){0,2}[a-z0-9][a-z0-9.-]{0,252}\Z")


def shell_words(host: Host) -> tuple[str, ...]:
    """The shell's argv. A pod may be written `pod`, `namespace/pod` or `namespace/pod/container`.

    Raises `UsageError` for a name that is none.
    """
    if host.container is None:
        return SHELL
    runtime, name = host.container.runtime, host.container.name
    words = _RUNTIMES.get(runtime)
    if words is None:
        raise UsageError(
            f"{host.name}: there is no container runtime {runtime!r}", f"one of {', '.join(_RUNTIMES)}"
        )
    if not (_POD if runtime == "kubectl" else _NAME).match(name):
        raise UsageError(f"{host.name}: {name!r} is not a container's name")
    if runtime != "kubectl":
        return (*words, name, *SHELL)
    namespace, pod, container = _parts(name)
    words += ("-n", namespace) if namespace else ()
    words += (pod, "-c", container) if container else (pod,)
    return (*words, "--", *SHELL)


def _parts(name: str) -> tuple[str, str, str]:
    """(namespace, pod, container), empty where not given."""
    parts = name.split("/")
    if len(parts) == 1:
        return "", parts[0], ""
    return parts[0], parts[1], parts[2] if len(parts) == 3 else ""


def command_line(host: Host) -> str:
    """The shell as one command line that any login shell takes: no character in it needs a quote."""
    return "exec " + " ".join(shell_words(host))
