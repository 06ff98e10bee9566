"""`python -m use_st5` is the command `use-st5`; its script calls `main` as well."""

import sys


def main() -> None:
    """Runs the command line; a Ctrl-C while it is imported is one line, too."""
    try:
        from use_st5.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
