"""Finding translations: the Tatoeba test set of 112 languages."""
