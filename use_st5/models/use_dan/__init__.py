"""USE-DAN: the deep averaging encoder of the Universal Sentence Encoder."""
