"""Several encoders that answer as one."""
