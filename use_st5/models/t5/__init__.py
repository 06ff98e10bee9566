"""T5 and Sentence-T5."""
