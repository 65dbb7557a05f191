"""The shape of the effect: curves, interactions, shares of variance, single rows taken apart.

A kernel that is a product over the features makes every average over independent features a product of averages, so
that nothing is sampled. `products.py` is that form, over features, groups and categories (units) whose values are
distributed as `margins.py` says; read it first. `variances.py` has the variances of the parts of a function.
"""
