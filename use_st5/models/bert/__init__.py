"""BERT, RoBERTa and Sentence-BERT."""
