from .block_posterior import BlockInference as BlockInference
from .block_posterior import BlockPosterior as BlockPosterior
from .block_posterior import NearBlocks as NearBlocks
from .block_posterior import default_near_rows as default_near_rows
from .evidence import VecchiaEngine as VecchiaEngine
