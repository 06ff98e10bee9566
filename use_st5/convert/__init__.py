"""Files of any format into named arrays; nothing in a checkpoint is ever run."""
