"""Backends: models that answer."""

from unswayed.backends import Backend as Backend
from unswayed.backends import BackendSettings as BackendSettings
from unswayed.backends.protocol import Wait as Wait
from unswayed.calls import Failure as Failure
from unswayed.calls import Query as Query
from unswayed.calls import Request as Request
from unswayed.calls import Response as Response
from unswayed.calls import TokenLogprob as TokenLogprob
