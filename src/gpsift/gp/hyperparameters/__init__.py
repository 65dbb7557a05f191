"""Search and sampling of hyperparameters, from a `Problem` to an `Estimate`.

Read `problem.py` first, which states the objective, then `choices.py` with `ML2`, `MAP` and `Fixed`. Kernels and
likelihoods declare the hyperparameters themselves (`gpsift._utils.parameter`).

- `optimize.py`: L-BFGS from several starts. `subsampling.py`: the same search from few rows to all. `restarts.py`:
  new values for length-scales that have lost their gradient, and warm starts.
- `stepwise.py`: stepwise selection of features, `Sift`. `score_tests.py`: statistics of features outside the model.
- `nuts.py`: the sampler `NUTS`. `warp_u.py`: posteriors with several modes. `laplace_approximation.py`: draws without a
  sampler. `coordinates.py`: coordinates of searches and samplers. `priors.py`: priors of hyperparameters.

`gpsift.gp.sparse` searches the hyperparameters of sparse models.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
