"""SentGLUE (Sentence-T5 paper, section 8): GLUE's tasks on frozen sentence embeddings."""
