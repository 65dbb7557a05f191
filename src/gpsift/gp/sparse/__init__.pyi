from .around import AroundEngine as AroundEngine
from .bound import BoundEngine as BoundEngine
from .choice import Sparse as Sparse
from .engine import SparseEngine as SparseEngine
from .engine import local_rows as local_rows
from .search import search_for as search_for
from .variational import VariationalEngine as VariationalEngine
