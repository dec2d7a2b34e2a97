"""The command line: `talkconv`, or `python -m talkconv` for launchers that need a module."""

from talkconv.installing import install_command

# packages and the extras that install them; all others come with `text`
_EXTRAS = {"onnxruntime": "runtime", "onnx": "export", "onnxscript": "export"}
_EXTRAS |= dict.fromkeys(("starlette", "uvicorn", "pydantic", "prometheus_client"), "serve")


def main() -> None:
    """Run the command line. If a package is missing, print the command that installs it."""
    try:
        from talkconv import cli

        cli.app()
    except ModuleNotFoundError as error:
        package = str(error.name).split(".")[0]
        if package == "talkconv":
            raise
        cure = install_command(_EXTRAS.get(package, "text"))
        raise SystemExit(f"talkconv: this command needs {package}: {cure}") from error


if __name__ == "__main__":
    main()
