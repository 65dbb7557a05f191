"""What a careful analyst does with a table before the first fit, done and told: a plan of steps.

A table comes in as it was read, and a `Plan` goes out: its `steps` say what is done, in their order, and its `prepared`
is the table with all of it done, fit for a model. Each file but these has one idea: `numbers` for numbers that are
written as texts, `dates`, `columns` for those that say nothing, `names` for identifiers, `levels` for categories,
`holes` for missing values; `leaks` only points something out. Read `plan` first.
"""

from gpsift.app.tables.tidy.plan import Plan, planned

__all__ = ["Plan", "planned"]
