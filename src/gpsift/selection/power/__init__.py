"""Before a study: how many rows it needs, by studies that a fitted model makes up.

`power.py` is the verb. `study.py` makes up one study and tests it as `discover` would; its inputs are rows like those
that the model was fitted to (`new_rows.py`).
"""
