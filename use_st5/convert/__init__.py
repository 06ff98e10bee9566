"""Foreign weights into our models; nothing in a checkpoint is ever run."""
