"""A made-up file tree: files, folders and links in memory, looked up as a Linux kernel would."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

MISSING = "No such file or directory"
DENIED = "Permission denied"
IS_FOLDER = "Is a directory"
NOT_FOLDER = "Not a directory"
LOOP = "Too many levels of symbolic links"
MAX_LINKS = 40


class TreeError(Exception):
    """Why a path gives nothing, in the kernel's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every entry has."""

    mode: int
    uid: int = 0
    modified: int = 0
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Node):
    """A file. `size` may claim more than `content` holds: of a model's weights only the header is here."""

    content: bytes = b""
    size: int | None = None
    mode: int = 0o644

    @property
    def length(self) -> int:
        return len(self.content) if self.size is None else self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder(Node):
    mode: int = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Node):
    """A symbolic link. Mode 0o700 hides its target from all but its owner, as /proc/<pid>/cwd does."""

    target: str
    mode: int = 0o777


@dataclass(slots=True)
class Tree:
    """Entries by absolute path. Filled once, then only read, by any number of threads."""

    uid: int
    """Who looks: rights are theirs."""
    nodes: dict[str, Node] = field(default_factory=lambda: {"/": Folder()})
    children: dict[str, list[str]] = field(default_factory=lambda: {"/": []})

    # --- filling ---

    def add(self, path: str, node: Node) -> None:
        """Put an entry there; folders above it that are missing come with its owner and age."""
        if path in self.nodes:
            self.nodes[path] = node
            return
        above = posixpath.dirname(path)
        if above not in self.nodes:
            self.add(above, Folder(uid=node.uid, modified=node.modified))
        self.nodes[path] = node
        self.children[above].append(posixpath.basename(path))
        if isinstance(node, Folder):
            self.children[path] = []

    # --- looking up ---

    def resolve(self, path: str, *, follow: bool = True) -> str:
        """The entry's own path, links on the way followed (and the last one too, if asked). Raises `TreeError`."""
        if not path:
            raise TreeError(MISSING)
        must_be_folder = path.endswith("/")
        todo = [part for part in path.split("/") if part not in ("", ".")][::-1]
        at, links = "/", 0
        while todo:
            part = todo.pop()
            if not isinstance(self.nodes[at], Folder):
                raise TreeError(NOT_FOLDER)
            if not self.may(at, 1):
                raise TreeError(DENIED)
            if part == "..":
                at = posixpath.dirname(at)
                continue
            child = posixpath.join(at, part)
            node = self.nodes.get(child)
            if node is None:
                raise TreeError(MISSING)
            if isinstance(node, Link) and (todo or follow or must_be_folder):
                links += 1
                if links > MAX_LINKS:
                    raise TreeError(LOOP)
                target = self.target(child)
                todo += [part for part in target.split("/") if part not in ("", ".")][::-1]
                at = "/" if target.startswith("/") else at
                continue
            at = child
        if must_be_folder and not isinstance(self.nodes[at], Folder):
            raise TreeError(NOT_FOLDER)
        return at

    def node(self, path: str, *, follow: bool = True) -> Node:
        """The entry at this path. Raises `TreeError`."""
        return self.nodes[self.resolve(path, follow=follow)]

    def read(self, path: str) -> bytes:
        """What the file holds. Raises `TreeError`."""
        at = self.resolve(path)
        node = self.nodes[at]
        if not self.may(at, 4):
            raise TreeError(DENIED)
        if not isinstance(node, File):
            raise TreeError(IS_FOLDER)
        return node.content

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted as `LC_ALL=C` sorts. Raises `TreeError`."""
        at = self.resolve(path)
        if not isinstance(self.nodes[at], Folder):
            raise TreeError(NOT_FOLDER)
        if not self.may(at, 4):
            raise TreeError(DENIED)
        return sorted(self.children[at], key=lambda name: name.encode())

    def target(self, at: str) -> str:
        """Where the link at this resolved path points. Raises `TreeError`."""
        node = self.nodes[at]
        if not isinstance(node, Link):
            raise TreeError("Invalid argument")
        if not self.may(at, 4):
            raise TreeError(DENIED)
        return node.target

    def may(self, at: str, right: int) -> bool:
        """Whether the one who looks has this right (4 read, 1 search) on a resolved path."""
        node = self.nodes[at]
        if self.uid == 0:
            return True
        bits = node.mode >> 6 if node.uid == self.uid else node.mode
        return bool(bits & right)
