"""Charts of metrics for notebooks and files, without a plotting package."""
