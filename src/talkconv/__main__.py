"""The command line: `talkconv`, or `python -m talkconv` for launchers that need a module."""

from talkconv.installing import install_command


def main() -> None:
    try:
        from talkconv import cli
    except ImportError as error:
        raise SystemExit(
            f"talkconv: this command needs {error.name}: {install_command('text')}"
        ) from error
    cli.app()


if __name__ == "__main__":
    main()
