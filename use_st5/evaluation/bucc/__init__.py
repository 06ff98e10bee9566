"""Mining translations out of two texts: the BUCC 2018 shared task."""
