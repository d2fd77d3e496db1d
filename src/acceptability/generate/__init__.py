"""Generated sentences: paradigms from templates and a lexicon, with labels, tags and contrasts."""
