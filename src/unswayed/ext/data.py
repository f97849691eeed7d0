"""Data: importers of recorded outputs and published benchmarks."""

from unswayed.data.benchmarks import Benchmark as Benchmark
from unswayed.data.benchmarks import Place as Place
from unswayed.data.importers import read_decisions_file as read_decisions_file
from unswayed.data.importers.protocol import Importer as Importer
from unswayed.data.importers.protocol import ReadRecord as ReadRecord
from unswayed.data.importers.protocol import Source as Source
from unswayed.data.importers.protocol import candidate_at as candidate_at
from unswayed.data.importers.protocol import has as has
from unswayed.data.importers.protocol import importer as importer
from unswayed.data.importers.protocol import pair_decision as pair_decision
from unswayed.model.items import BadFieldError as BadFieldError
from unswayed.model.items import Item as Item
from unswayed.model.items import Task as Task
from unswayed.model.items import encode_item as encode_item
from unswayed.model.presentation import X0 as X0
from unswayed.model.presentation import X2 as X2
