"""Sound in, words and evidence out: voice detection, recognition, and what the voice itself says about the end."""
