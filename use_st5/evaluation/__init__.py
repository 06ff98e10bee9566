"""How good the embeddings are: the protocols of the published papers."""
