"""Data sets whose true inputs are known, methods that rank or select inputs, and how well each of them does.

python -m benchmarks.battery run --out DIR --n 100 --seeds 20 --jobs 16     # goes on where it was interrupted
python -m benchmarks.battery summary --out DIR                              # tables, as markdown
python -m benchmarks.battery keep --out DIR                                 # the stored table, the page and its picture
python -m benchmarks.battery add --out DIR                                  # the same, with what is stored of others

`functions.py` holds the true functions, `indices.py` how much each of their inputs matters, `tasks.py` the data sets,
`gaussian_processes.py` and `rivals.py` the methods, `methods.py` their list, `scores.py` how they are judged,
`runner.py` the run, `summary.py` its tables, `picture.py` its picture and `page.py` what is kept of it.
"""
