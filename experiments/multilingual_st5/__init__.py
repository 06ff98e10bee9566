"""m-ST5, a multilingual Sentence-T5 trained with LoRA (Yano et al. 2024)."""
