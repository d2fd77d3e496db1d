"""One reader per published format; the registry says which function reads which suite."""
