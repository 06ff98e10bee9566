"""`python -m use_st5` is the `use-st5` command."""

from use_st5.cli import main

if __name__ == "__main__":
    main()
