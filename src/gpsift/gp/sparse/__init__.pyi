from .around import AroundEngine as AroundEngine
from .bound_engine import BoundEngine as BoundEngine
from .bound_search import search_for as search_for
from .choice import Sparse as Sparse
from .engine import SparseEngine as SparseEngine
from .engine import local_rows as local_rows
from .variational_engine import VariationalEngine as VariationalEngine
