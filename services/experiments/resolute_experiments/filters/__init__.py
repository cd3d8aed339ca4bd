"""The language of filters for experiments and trials."""
