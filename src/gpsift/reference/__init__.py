"""This package defines the interface through which measures use a fitted model, of gpsift or of another library.

`base.py` defines it: ``Reference.at(points)`` returns a `Response`. `inputs.py` has the inputs of a model and the
points, `posterior.py` the latent posterior of a Gaussian process, `response.py` its closed-form response.
`finite_differences.py` is for models that only predict, `ensemble.py` for several draws of one model. `wrappers`
transform inputs and combine outputs, `lookup.py` finds the adapter of a library, `dask` reads rows that are not in this
process. Read `base.py` first.
"""
