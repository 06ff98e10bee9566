"""One file per loss; each names the features that it reads from a batch."""
