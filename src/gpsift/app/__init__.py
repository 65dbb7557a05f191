"""Read and clean tables, analyse them, and show the answer on a page and in the command line."""
