"""Where playbooks are: by path, in ./playbooks, in the user's own folder, and those that ddprobe ships."""

from __future__ import annotations

from pathlib import Path

import ddprobe
from ddprobe import plainfile
from ddprobe.errors import PlaybookError
from ddprobe.yamlfile import nearest

SUFFIXES = (".yaml", ".yml")
LOCAL, OWN, SHIPPED = "local", "own", "shipped"


def shipped() -> Path:
    """The folder of those that ddprobe ships: installed they lie in the package, a checkout has them beside it."""
    package = Path(ddprobe.__file__).parent
    beside = package.parent / "playbooks"
    return beside if (package.parent / "pyproject.toml").is_file() else package / "playbooks"


def places() -> tuple[tuple[str, Path], ...]:
    """(whose, folder) in the order in which a name is looked up."""
    import platformdirs

    own = platformdirs.user_config_path("ddprobe") / "playbooks"
    here = Path("playbooks")
    # Within a checkout ./playbooks is the folder of those that are shipped.
    local = () if here.resolve() == shipped().resolve() else ((LOCAL, here),)
    return (*local, (OWN, own), (SHIPPED, shipped()))


def all_of_them() -> tuple[tuple[str, str, Path], ...]:
    """(name, whose, file) of each, by name; of two with one name only the one that `find` gives."""
    found: dict[str, tuple[str, Path]] = {}
    seen: set[Path] = set()
    for whose, folder in places():
        files = (
            sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES and path.is_file())
            if folder.is_dir()
            else []
        )
        for path in files:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                found.setdefault(path.stem, (whose, path))
    return tuple((name, whose, path) for name, (whose, path) in sorted(found.items()))


def find(word: str) -> Path:
    """The file that is meant: a path, or a name. Raises `PlaybookError` when there is none."""
    if "/" in word or "." in word:
        path = plainfile.named(word)
        if why := plainfile.trouble(path):
            raise PlaybookError(f"{word}: {why}", "ddprobe playbook list shows those there are")
        return path
    names = {name: path for name, _, path in all_of_them()}
    if word in names:
        return names[word]
    has = f"there are {', '.join(names)}" if names else "there is none"
    raise PlaybookError(f"there is no playbook {word!r}{nearest(word, names)}", has)
