"""Tasks: what is asked about candidates, and how a reply is read."""

from unswayed.calls import Response as Response
from unswayed.decisions import Decision as Decision
from unswayed.decisions import Evidence as Evidence
from unswayed.items import Item as Item
from unswayed.parsing import LABEL as LABEL
from unswayed.parsing import Reply as Reply
from unswayed.parsing import ReplySpec as ReplySpec
from unswayed.parsing import decision_of as decision_of
from unswayed.parsing import ending as ending
from unswayed.presentation import Ask as Ask
from unswayed.presentation import Presentation as Presentation
from unswayed.tasks import Points as Points
from unswayed.tasks import TaskSpec as TaskSpec
from unswayed.tasks import check_gold as check_gold
from unswayed.tasks import right_candidates as right_candidates
