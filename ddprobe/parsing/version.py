"""Compares an engine's version with a release, and admits when a development build cannot be placed.

0.5.13              a release
0.5.14.dev27+g1a2b  on its way to 0.5.14: what it already holds of it is unknown
0.5.13.post1+cu129  0.5.13 with fixes; the local part says nothing
0.0.0.dev0          what a build without metadata calls itself: unknown
"""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){1,3})"
    r"(?P<pre>[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"(?P<post>[-_.]?(?:post|rev|r)[-_.]?\d*)?"
    r"(?P<dev>[-_.]?dev[-_.]?\d*)?"
    r"(?:\+[A-Za-z0-9._-]+)?\Z",
    re.IGNORECASE,
)


def release(version: str) -> tuple[int, ...] | None:
    """The release numbers, padded to three; None for a commit hash, a branch, or a build without metadata."""
    found = _VERSION.match(version.strip())
    if not found:
        return None
    numbers = tuple(int(part) for part in found["release"].split("."))
    padded = (*numbers, 0, 0)
    return padded[: max(3, len(numbers))] if any(numbers) else None


def before(version: str, boundary: str) -> bool | None:
    """True when `version` is older than the release `boundary`; None when that cannot be said."""
    numbers, limit = release(version), release(boundary)
    if numbers is None or limit is None:
        return None
    found = _VERSION.match(version.strip())
    assert found is not None
    unfinished = bool(found["pre"] or found["dev"])
    if unfinished and (numbers == limit or (found["post"] and numbers < limit)):
        return None
    return numbers < limit
