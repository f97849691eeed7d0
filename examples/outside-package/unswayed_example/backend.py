"""A backend: a judge that likes long answers, and what is shown first if they are equally long."""

from unswayed.ext.models import Backend, Response


class Longest(Backend):
    """Answers by counting characters or words; it needs no network and costs nothing."""

    offline = True
    planted = True

    def __init__(self, unit):
        self.model = f"longest/{unit}"
        self.by_words = unit == "words"

    def respond(self, query):
        shown = query.ask.presentation
        texts = [str(query.item.candidates[candidate]) for candidate in shown.order]
        lengths = [len(text.split()) if self.by_words else len(text) for text in texts]
        position = lengths.index(max(lengths))
        return Response(text=query.request.labels[shown.labels[position]], cost_usd=0.0)


def open_longest(model, settings):
    """The longest answer, in characters or words: `longest/characters`, `longest/words`."""
    return Longest(model)
