"""Tasks: what is asked about candidates, and how a reply is read."""

from unswayed.model.calls import Response as Response
from unswayed.model.decisions import Decision as Decision
from unswayed.model.decisions import Evidence as Evidence
from unswayed.model.items import Item as Item
from unswayed.model.parsing import LABEL as LABEL
from unswayed.model.parsing import Reply as Reply
from unswayed.model.parsing import ReplySpec as ReplySpec
from unswayed.model.parsing import decision_of as decision_of
from unswayed.model.parsing import ending as ending
from unswayed.model.presentation import Ask as Ask
from unswayed.model.presentation import Presentation as Presentation
from unswayed.model.tasks import Points as Points
from unswayed.model.tasks import TaskSpec as TaskSpec
from unswayed.model.tasks import check_gold as check_gold
from unswayed.model.tasks import right_candidates as right_candidates
