"""Backends: models that answer."""

from unswayed.backends import Backend as Backend
from unswayed.backends import BackendSettings as BackendSettings
from unswayed.backends.protocol import Wait as Wait
from unswayed.model.calls import Failure as Failure
from unswayed.model.calls import Query as Query
from unswayed.model.calls import Request as Request
from unswayed.model.calls import Response as Response
from unswayed.model.calls import TokenLogprob as TokenLogprob
