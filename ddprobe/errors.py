"""Everything raised on purpose, and what each means for the person.

DdprobeError                 one line: what, where; `advice`: what to try
├── UsageError               exit 2: nothing was run
│   ├── InventoryError       exit 2: the hosts file, with file:line:column
│   └── PlaybookError        exit 2: a playbook, with file:line:column
├── HostError                exit 3: this host could not be reached or refused us; the others go on
│   ├── Unreachable          no route, no name, refused, timed out, the line went dead
│   ├── NotAuthenticated     the host knows us not: keys, agent, user
│   ├── HostKeyUnknown       never seen: strict checking refuses it
│   ├── HostKeyChanged       seen before with another key: always refused
│   └── NoShell              a forced command, `nologin` or a restricted shell answered in place of /bin/sh
├── Refused                  ddprobe's own read-only policy said no before anything was sent
└── Unanswered               a question got no whole answer; the runner turns it into an *unknown* finding
Cancelled                    Ctrl-C: exit 130, what was collected is in the report
"""


class DdprobeError(Exception):
    """A trouble that a person can act on."""

    exit_code = 2

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class UsageError(DdprobeError):
    """The question itself is wrong: an option, a size, a range, a name."""


class InventoryError(UsageError):
    """The hosts file is wrong; the message holds every mistake found, each with file:line:column."""


class PlaybookError(UsageError):
    """A playbook is wrong; the message holds every mistake found, each with file:line:column."""


class HostError(DdprobeError):
    """A host could not be reached, or refused us."""

    exit_code = 3


class Unreachable(HostError):
    """No connection, or it went dead."""


class NotAuthenticated(HostError):
    """No key, agent identity or password was accepted."""


class HostKeyUnknown(HostError):
    """The host's key is in no known_hosts file."""


class HostKeyChanged(HostError):
    """The host's key differs from the known one."""


class NoShell(HostError):
    """Something else than a POSIX shell answered."""


class Refused(DdprobeError):
    """The read-only policy refused a question before it left."""


class Unanswered(DdprobeError):
    """A question got no whole answer. `key` names the question."""

    exit_code = 4

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class Cancelled(BaseException):
    """The person pressed Ctrl-C. Like KeyboardInterrupt, no `except Exception` may swallow it."""
