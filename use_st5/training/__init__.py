"""The training loop, the strategies it runs under, its checkpoints and its data."""
