"""The commands of `use-st5`, one module each; `main.py` puts them together."""
