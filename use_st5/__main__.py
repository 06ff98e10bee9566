"""`python -m use_st5` is the `use-st5` command, whose script comes here, too."""

from use_st5.cli.interrupts import end_interrupted, hear_every_interrupt, interrupted


def main() -> None:
    """Runs the command line; a Ctrl-C is heard before it is imported, which takes a while."""
    try:
        hear_every_interrupt()
        from use_st5.cli.main import main as run

        run()
    except SystemExit:  # All has been said.
        raise
    except BaseException:  # Whatever an import made of a Ctrl-C.
        if interrupted():
            end_interrupted()
        raise


if __name__ == "__main__":
    main()
