"""Data: importers of recorded outputs and published benchmarks."""

from unswayed.benchmarks import Benchmark as Benchmark
from unswayed.benchmarks import Place as Place
from unswayed.importers.protocol import Importer as Importer
from unswayed.importers.protocol import Judged as Judged
from unswayed.importers.protocol import Source as Source
from unswayed.importers.protocol import candidate_at as candidate_at
from unswayed.importers.protocol import has as has
from unswayed.importers.protocol import importer as importer
from unswayed.importers.protocol import pair_decision as pair_decision
from unswayed.items import BadFieldError as BadFieldError
from unswayed.items import Item as Item
from unswayed.items import Task as Task
from unswayed.presentation import X0 as X0
from unswayed.presentation import X2 as X2
