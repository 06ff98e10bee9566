"""The training of the bundled models, and of one that was tried and does not ship."""
