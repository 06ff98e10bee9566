"""Local and remote files, records and progress."""
