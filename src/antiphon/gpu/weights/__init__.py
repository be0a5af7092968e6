"""Model files in, tensors out: llama.cpp's, Hugging Face's and CTranslate2's formats."""
