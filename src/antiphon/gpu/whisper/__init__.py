"""Whisper on a GPU: encoder windows, decoder steps, and the two together as the recognizer asks for them."""
