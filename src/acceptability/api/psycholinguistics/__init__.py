"""What psycholinguistics asks of models: surprisals of the words of an experiment, completions and cloze."""
