"""One file per system, and the table of presets."""
