from .block_posterior import BlockInference as BlockInference
from .block_posterior import BlockPosterior as BlockPosterior
from .block_posterior import NearBlocks as NearBlocks
from .block_posterior import usual_near_rows as usual_near_rows
from .evidence import VecchiaEngine as VecchiaEngine
