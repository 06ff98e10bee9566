"""The training of the bundled models, and of one that is not bundled."""
