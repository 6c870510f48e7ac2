"""The inference servers ddprobe knows, one dialect a file, and the table of them."""

from __future__ import annotations

from ddprobe.engines.base import HTTP_TIMEOUT, Engine
from ddprobe.engines.llamacpp import LlamaCpp
from ddprobe.engines.sglang import SGLang
from ddprobe.engines.vllm import VLLM
from ddprobe.facts import ServerArgs, ServerProcess
from ddprobe.model import Cite

__all__ = ["HTTP_TIMEOUT", "TABLE", "Engine", "command_line", "recognise"]

TABLE: dict[str, Engine] = {engine.name: engine for engine in (SGLang(), VLLM(), LlamaCpp())}


def recognise(argv: tuple[str, ...]) -> Engine | None:
    """The engine whose server this argv runs; None for everything else, whatever words stand in it."""
    return next((engine for engine in TABLE.values() if engine.arguments(argv) is not None), None)


def command_line(server: ServerProcess) -> ServerArgs:
    """The arguments a running server was given (llama.cpp: by its environment, too), under canonical names."""
    engine = TABLE[server.engine]
    values = engine.given(server.argv, server.environment)
    elsewhere = values.get(engine.config_file) if engine.config_file else None
    return ServerArgs(
        engine=server.engine,
        origin="command line",
        version=server.version,
        server=server.name,
        values=tuple(values.items()),
        elsewhere=elsewhere if isinstance(elsewhere, str) else "",
        source=(Cite(f"cmdline-{server.pid}"),),
    )
