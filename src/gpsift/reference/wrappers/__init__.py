"""References made of other references: other columns and units, several outputs, gradients of another library."""
