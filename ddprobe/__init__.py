"""ddprobe: find out over SSH why speculative decoding misbehaves on a GPU host."""

__version__ = "0.1.0"
