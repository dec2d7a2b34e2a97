"""`talkconv`, and `python -m talkconv` for launchers that want a module."""


def main() -> None:
    try:
        from talkconv import cli
    except ImportError as error:
        raise SystemExit(
            f"talkconv: the command line needs {error.name}: pip install 'talkconv[text]'"
        ) from error
    cli.app()


if __name__ == "__main__":
    main()
