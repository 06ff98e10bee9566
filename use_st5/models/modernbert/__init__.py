"""ModernBERT, and sentence encoders made from it."""
