"""The interface through which measures see a model, ours or another library's.

`base.py` is the contract: a `Reference` answers ``at(points)`` with a `Response`. `inputs.py` has the inputs of a model
and the points, `posterior.py` the latent posterior of a Gaussian process, `response.py` its closed-form response.
`finite_differences.py` is for models that only predict, `ensemble.py` for many models that act as one. `wrappers` put
models behind transformed inputs and combine outputs, `lookup.py` finds the adapter of a library, `dask` has rows that
are not in this process. Read `base.py` first.
"""
