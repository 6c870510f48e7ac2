"""What all tests share: which of them may run side by side, and the screen that they see."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class OneMachine(LoadScopeScheduling):  # type: ignore[misc]
    """Files run side by side, but for those in tests/real/servers/: each would see the others' servers running."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "servers" if file.startswith("tests/real/servers/") else file


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneMachine:
    return OneMachine(config, log)


def pytest_configure() -> None:
    """One width, no wish for colours and a Ctrl-C that counts, whoever runs them and wherever."""
    os.environ["COLUMNS"] = "120"
    # A shell that starts them in the background has Ctrl-C ignored, nohup a hang-up, and so would every program that they
    # start. A handler, even one that does nothing, is not handed on to those.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    for name in ("LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        os.environ.pop(name, None)
