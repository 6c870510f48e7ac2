"""Where the `ddprobe` command starts."""

import sys


def main() -> None:
    """Run the command line. `--version` alone answers before anything heavier is imported."""
    if sys.argv[1:] == ["--version"]:
        from ddprobe import __version__

        sys.stdout.write(f"ddprobe {__version__}\n")
        return
    try:
        from ddprobe.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # While modules were still being loaded.
        sys.stderr.write("ddprobe: interrupted\n")
        code = 130
    raise SystemExit(code)


if __name__ == "__main__":
    main()
