"""Text embedders of KerasHub, whose networks and tokenizers are not written again here."""
