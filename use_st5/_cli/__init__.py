"""The commands of `use-st5`, one module each; nothing outside `use_st5/cli.py` imports them."""
