"""StaticEmbedding of sentence-transformers: the mean of the rows of a token table."""
