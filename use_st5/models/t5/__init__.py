"""T5, and Sentence-T5 made of it."""
