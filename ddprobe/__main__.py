"""Where the `ddprobe` command starts."""

import sys


def main() -> None:
    """Run the command line. `--version` alone answers before anything heavier is imported."""
    if sys.argv[1:] == ["--version"]:
        raise SystemExit(_version())
    try:
        from ddprobe.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # While modules were still being loaded.
        sys.stderr.write("ddprobe: interrupted\n")
        code = 130
    raise SystemExit(code)


def _version() -> int:
    from ddprobe import __version__
    from ddprobe.cli import streams

    streams.stand_in()
    try:
        with streams.printing():
            sys.stdout.write(f"ddprobe {__version__}\n")
    except streams.Unwritten as error:
        streams.note(f"ddprobe: {error.message}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    main()
