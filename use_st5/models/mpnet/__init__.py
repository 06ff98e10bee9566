"""MPNet, and sentence encoders made from it."""
