"""Model names, downloads, and the folder of a model."""
