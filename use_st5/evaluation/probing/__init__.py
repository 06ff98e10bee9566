"""SentEval's ten probing tasks: which properties of a sentence its embedding shows.

Conneau et al., "What you can cram into a single $&!#* vector" (ACL 2018); the file format is that
of facebookresearch/SentEval, data/probing/README.md.
"""
