"""MPNet, and sentence encoders made of it."""
