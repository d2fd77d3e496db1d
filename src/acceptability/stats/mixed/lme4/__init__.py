"""An optional bridge to R: the same formula, fitted by lme4, lmerTest or ordinal where they are installed."""
