"""Where the `ddprobe` command starts."""

import sys


def main() -> None:
    """Run the command line. `--version` alone answers before anything heavier is imported."""
    if sys.argv[1:] == ["--version"]:
        from ddprobe import __version__

        sys.stdout.write(f"ddprobe {__version__}\n")
        return
    from ddprobe.cli.app import run

    raise SystemExit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
