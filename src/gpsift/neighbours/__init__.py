"""Inference by neighbours, for many rows with Gaussian noise: exact inference on rows near a block, or near a point.

`blocks.py` cuts rows into blocks of those that are near one another, `near.py` finds the rows that are near a block.
`vecchia.py` is the evidence. There are two posteriors, `block_posterior.py` and `nearest_posterior.py`, which share
`in_blocks.py`; `block_inference.py` and `nearest_inference.py` make them of `neighbourhoods.py` and leave rows out.
`choice.py` says which of the two. Read them in this order.
"""

from typing import TYPE_CHECKING

from gpsift.neighbours.choice import NOBODY, Near, near_blocks, nearest_to_points
from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.neighbours.block_inference import NearBlocks
    from gpsift.neighbours.block_posterior import BlockPosterior
    from gpsift.neighbours.in_blocks import PosteriorInBlocks
    from gpsift.neighbours.nearest_inference import NearPoints
    from gpsift.neighbours.nearest_posterior import NearestPosterior
    from gpsift.neighbours.neighbourhoods import ByNeighbours, Neighbourhoods
    from gpsift.neighbours.vecchia import VecchiaEngine

__all__ = [
    "NOBODY",
    "BlockPosterior",
    "ByNeighbours",
    "Near",
    "NearBlocks",
    "NearPoints",
    "NearestPosterior",
    "Neighbourhoods",
    "PosteriorInBlocks",
    "VecchiaEngine",
    "near_blocks",
    "nearest_to_points",
]

if not TYPE_CHECKING:  # when there are many rows
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "BlockPosterior": "gpsift.neighbours.block_posterior",
            "ByNeighbours": "gpsift.neighbours.neighbourhoods",
            "NearBlocks": "gpsift.neighbours.block_inference",
            "NearPoints": "gpsift.neighbours.nearest_inference",
            "NearestPosterior": "gpsift.neighbours.nearest_posterior",
            "Neighbourhoods": "gpsift.neighbours.neighbourhoods",
            "PosteriorInBlocks": "gpsift.neighbours.in_blocks",
            "VecchiaEngine": "gpsift.neighbours.vecchia",
        },
    )
