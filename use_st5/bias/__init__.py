"""Which associations with groups of people the embeddings carry: tests of the published papers."""
