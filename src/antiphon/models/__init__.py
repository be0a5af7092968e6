"""Where models come from, under which licence, and whether their files on this machine are whole."""
