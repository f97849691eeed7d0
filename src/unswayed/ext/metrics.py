"""Metrics: from outcomes to a value with an interval."""

from unswayed.metrics import Metric as Metric
from unswayed.metrics import Need as Need
from unswayed.metrics import Outcomes as Outcomes
from unswayed.metrics import fraction as fraction
from unswayed.metrics import item_means as item_means
from unswayed.metrics import ratio as ratio
from unswayed.model.decisions import ABSTAINED as ABSTAINED
from unswayed.model.decisions import MISSING as MISSING
from unswayed.model.decisions import TIE as TIE
from unswayed.model.decisions import UNPARSED as UNPARSED
