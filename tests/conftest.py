"""What all tests share: which of them may run side by side."""

from __future__ import annotations

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
