"""How much is opened, unpacked and held: the bounds that hold for all that was named together."""

from __future__ import annotations

LARGE = 4 * 1024 * 1024
"""From so many bytes on, a text is read as it streams by, and is not copied into the report."""
CHUNK = 1024 * 1024
MAX_FILES = 2000
MAX_DEPTH = 3
"""Archives within archives."""
MAX_UNPACKED = 8 * 1024**3
MAX_RATIO = 250
"""Times its own size that an archive may unpack to, once that is more than `CHECKED_FROM`."""
CHECKED_FROM = 64 * 1024 * 1024
MOST_BOMBS = 3
"""Members that unpack to too much, before an archive is left alone."""
LEAST_FREE = 1024**3
"""Bytes of the disk that unpacking leaves to others."""
MAX_CONTENTS = 32 * 1024 * 1024
"""Bytes of a zip's table of contents, which is read at once: some 300,000 names."""
MAX_HEADER = 64 * 1024 * 1024
"""Bytes of a safetensors header."""
