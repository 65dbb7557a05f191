"""Estimators and a feature selector with scikit-learn's interface: `estimators.py` and `selector.py`."""
