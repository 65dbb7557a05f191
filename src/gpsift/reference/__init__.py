"""The interface through which measures see a model, ours or another library's.

`base.py` is the contract: a `Reference` answers ``at(points)`` with a `Response`. `inputs.py` holds what a model knows
of its inputs, `response.py` how a latent posterior answers, `posterior.py` the posterior itself.
`finite_differences.py` is for models that only predict, `ensemble.py` for many models that act as one; `wrappers`
combine and rescale models, `lookup.py` finds the adapter of a library. Read `base.py` first.
"""
