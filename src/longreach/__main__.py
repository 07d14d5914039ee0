"""`longreach` and `python -m longreach`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C is quiet from the first moment on, while the commands are still being loaded."""
    try:
        from longreach.cli.main import main as run_and_exit
    except KeyboardInterrupt:
        sys.exit(130)
    run_and_exit()


if __name__ == "__main__":
    main()
