"""Fixtures: a laptop, real SSH servers, accounts with other login shells, and sessions to them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ddprobe.model import Host
from ddprobe.redact import Redactor
from ddprobe.sessions import open_session
from ddprobe.sessions.base import Session
from tests.real import sshd as real

StartServer = Callable[..., real.Server]
MakeAccount = Callable[..., real.Account]
OpenSession = Callable[..., Session]


@pytest.fixture(scope="session")
def laptop() -> Iterator[real.Laptop]:
    """The connecting side; its `ssh` is first in $PATH."""
    with real.laptop() as made:
        yield made


@pytest.fixture(scope="session")
def server(laptop: real.Laptop) -> Iterator[real.Server]:
    """An sshd with default limits that all tests of a run share. Do not stop it."""
    with real.server(laptop) as running:
        yield running


@pytest.fixture
def account() -> Iterator[MakeAccount]:
    """`account("/usr/bin/fish", bashrc="…")`: a plain user, gone at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda shell, **files: stack.enter_context(real.account(shell, **files))


@pytest.fixture(scope="session")
def plain_user() -> Iterator[real.Account]:
    """A user without privileges whose login shell is dash."""
    with real.account("/bin/dash") as made:
        yield made


@pytest.fixture
def sshd(laptop: real.Laptop, account: MakeAccount) -> Iterator[StartServer]:
    """`sshd(max_sessions=1, forced_command="…", who=…, …)`: a running server, stopped at the end of the test."""
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> real.Server:
            shell = options.pop("login_shell", None)
            if shell is not None:
                options["who"] = account(shell)
            return stack.enter_context(real.server(laptop, **options))

        yield start


@pytest.fixture
def session() -> Iterator[OpenSession]:
    """`session(host, cancelled=…)`: an open session, closed at the end of the test."""
    with contextlib.ExitStack() as stack:

        def connect(host: Host, cancelled: threading.Event | None = None) -> Session:
            opened = open_session(host, Redactor(), cancelled or threading.Event())
            stack.callback(opened.close)
            return opened

        yield connect
