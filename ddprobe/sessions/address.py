"""Where a base URL points, as the host sees it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def seen_from_host(base: str) -> tuple[str, str, int]:
    """Scheme, address and port. An address that means "all of mine" is loopback."""
    parts = urlsplit(base)
    address = parts.hostname or ""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    return parts.scheme, address, parts.port or (443 if parts.scheme == "https" else 80)


def is_loopback(address: str) -> bool:
    """Whether the address can only be the host itself."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
