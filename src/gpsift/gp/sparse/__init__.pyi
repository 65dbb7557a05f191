from .bound import BoundEngine as BoundEngine
from .bound import IntervalEngine as IntervalEngine
from .choice import Sparse as Sparse
from .engine import SparseEngine as SparseEngine
from .engine import local_rows as local_rows
from .search import engine_for as engine_for
from .search import search_hyperparameters as search_hyperparameters
from .variational import VariationalEngine as VariationalEngine
