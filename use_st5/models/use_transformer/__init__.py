"""The Transformer encoder of the Universal Sentence Encoder."""
