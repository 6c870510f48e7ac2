"""Fixtures: inference servers that really generate."""

from __future__ import annotations

from tests.real.servers.llamacpp import llama_server
from tests.real.servers.sglang_cpu import sglang_cpu

__all__ = ["llama_server", "sglang_cpu"]
