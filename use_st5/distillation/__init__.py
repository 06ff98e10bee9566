"""Learning from other encoders."""
