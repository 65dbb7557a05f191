"""From a table to an answer that people read: reading and cleaning tables, the analysis, the page, the command line."""
