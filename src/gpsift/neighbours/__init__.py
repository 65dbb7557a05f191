"""Inference by neighbours, for many rows with Gaussian noise: exact inference on the rows near each block of rows.

`blocks.py` cuts rows into blocks of those that are near one another, `near.py` finds the rows that are near a block.
`vecchia.py` is the evidence, `block_posterior.py` the posterior (with `visits.py`, points block by block, and
`moved.py`, points that leave theirs), and `block_inference.py` makes it and leaves rows out. Read them in this order.
"""

from typing import TYPE_CHECKING

from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.neighbours.block_inference import ByNeighbours, NearBlocks, usual_near_rows
    from gpsift.neighbours.block_posterior import BlockPosterior
    from gpsift.neighbours.vecchia import VecchiaEngine

__all__ = ["BlockPosterior", "ByNeighbours", "NearBlocks", "VecchiaEngine", "usual_near_rows"]

if not TYPE_CHECKING:  # when there are many rows
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "BlockPosterior": "gpsift.neighbours.block_posterior",
            "ByNeighbours": "gpsift.neighbours.block_inference",
            "NearBlocks": "gpsift.neighbours.block_inference",
            "VecchiaEngine": "gpsift.neighbours.vecchia",
            "usual_near_rows": "gpsift.neighbours.block_inference",
        },
    )
