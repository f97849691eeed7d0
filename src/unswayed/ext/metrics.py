"""Metrics: from outcomes to a value with an interval."""

from unswayed.decisions import MISSING as MISSING
from unswayed.decisions import TIE as TIE
from unswayed.decisions import UNPARSED as UNPARSED
from unswayed.metrics import Metric as Metric
from unswayed.metrics import Need as Need
from unswayed.metrics import Outcomes as Outcomes
from unswayed.metrics import fraction as fraction
from unswayed.metrics import item_means as item_means
from unswayed.metrics import ratio as ratio
