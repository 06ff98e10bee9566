"""Transfer models on sentence embeddings and on words (the USE paper, section 5)."""
