"""An encoder that reads a pair of texts together and returns one score."""
