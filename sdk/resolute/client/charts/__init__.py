"""Charts of metrics for notebooks and files, without a package that draws."""
