"""Words in, reply text out: language models, and the chunks that their text is spoken in."""
