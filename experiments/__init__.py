"""One script for each table of a paper, and for each bundled model; README.md lists them."""

import os

# Before TensorFlow is imported: no lines about the processor on standard error.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
