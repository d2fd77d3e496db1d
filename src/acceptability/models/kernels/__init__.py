"""What makes a forward pass fast, one file for each technique, and the check that scores stay the same.

``trie`` shares prefixes among sentences, ``attention`` computes attention over short sentences, ``head`` computes the
language-model head only where a token is scored, ``layers`` replaces layers by faster ones, and ``verify`` compares
every faster path with the plain one before it is used.
"""
