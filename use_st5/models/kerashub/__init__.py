"""Text embedders of KerasHub, with KerasHub's own networks and tokenizers."""
