"""BERT and RoBERTa, and sentence encoders made of them."""
