"""How a container is started, from a Compose file, a manifest, a Dockerfile or their JSON: arguments and variables."""

from __future__ import annotations

from collections.abc import Iterator

from ddprobe.evidence import commands, environment
from ddprobe.model import Fact
from ddprobe.parsing import container_text, image_tag

_OF_IMAGES = ("sglang", "vllm")


def facts(key: str, text: str) -> Iterator[Fact]:
    """What each container runs. A command on a line of its own is read as that, too: the caller takes it once."""
    for container in container_text.read(text):
        at = f"line {container.line}"
        # As on one line: what starts the container stands in front.
        words = ("docker", "run", container.image, *container.words)
        command = commands.of_words(words, listed=container.as_list)
        if command is not None:
            told = commands.facts(command, key, at, container.variables)
            yield from told
            continue
        kept = environment.allowed(container.variables)
        engine = next((name for name in _OF_IMAGES if image_tag.version((container.image,), name)), "")
        if kept:
            yield environment.process(kept, key, seen=False, at=at, engine=engine)
