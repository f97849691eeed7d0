"""Training: objectives, and engines that run them."""

from unswayed.training.groups import Groups as Groups
from unswayed.training.held_out import measure_held_out as measure_held_out
from unswayed.training.memory import Pass as Pass
from unswayed.training.one_token import Example as Example
from unswayed.training.own_labels import Lesson as Lesson
from unswayed.training.own_labels import OwnLabels as OwnLabels
from unswayed.training.pif import PIF as PIF
from unswayed.training.plan import Plan as Plan
from unswayed.training.policy_loss import PolicyLoss as PolicyLoss
from unswayed.training.processes import Sharding as Sharding
from unswayed.training.protocol import Engine as Engine
from unswayed.training.protocol import Objective as Objective
from unswayed.training.protocol import Stop as Stop
from unswayed.training.recipe_parts import Pif as Pif
from unswayed.training.recipe_parts import Recipe as Recipe
from unswayed.training.rewards import SampleKey as SampleKey
from unswayed.training.run_folder import RunFolder as RunFolder
from unswayed.training.sampling import Split as Split
from unswayed.training.scoring import Features as Features
from unswayed.training.scoring import SampleReader as SampleReader
from unswayed.training.scoring import score_rows as score_rows
