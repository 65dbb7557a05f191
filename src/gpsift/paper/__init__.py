"""This package has the paper's data (`datasets`) and its experiments (`reproduce`, run by ``gpsift reproduce``)."""

from gpsift.paper import datasets

__all__ = ["datasets"]
