"""Reply text in, paced sound out: synthesis and playout."""
