"""An encoder that reads a pair of texts at once and gives one number."""
