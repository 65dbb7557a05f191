from .block_inference import ByNeighbours as ByNeighbours
from .block_inference import NearBlocks as NearBlocks
from .block_inference import usual_near_rows as usual_near_rows
from .block_posterior import BlockPosterior as BlockPosterior
from .evidence import VecchiaEngine as VecchiaEngine
