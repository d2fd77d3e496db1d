"""Models from Hugging Face checkpoints: causal, masked, encoder-decoder, classifiers, encoders."""
