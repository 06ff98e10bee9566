"""ModernBERT, and sentence encoders made of it."""
