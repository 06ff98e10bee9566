"""Transfer learning from little data: accuracy against the number of training examples."""
