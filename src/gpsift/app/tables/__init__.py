"""From a file or a data frame to the columns and the target of a model: `tabular` reads, `tidy` cleans."""
