from .bound import BoundEngine as BoundEngine
from .choice import Sparse as Sparse
from .engine import SparseEngine as SparseEngine
from .engine import local_rows as local_rows
from .interval_engine import IntervalEngine as IntervalEngine
from .search import engine_for as engine_for
from .search import search_hyperparameters as search_hyperparameters
from .variational import VariationalEngine as VariationalEngine
