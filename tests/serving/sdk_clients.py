"""Ask decision servers through an SDK: `python sdk_clients.py PACKAGE < ASKED`.

A line of `ASKED` is `{"url": …, "model": …, "state": …, "options": [[name, text], …], "asked": name of the
question}`. The line of output is `[choice, [[name, probability], …]]`, or `[name of the exception, its status]`.
The program runs where the package is installed; it imports nothing of this project.
"""

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

Asked = dict[str, Any]
Told = tuple[Any, list[tuple[Any, float]]]
Ask = Callable[[Asked], Told]


def choices(asked: Asked) -> list[dict[str, Any]]:
    """The question in OpenAI's form."""
    options = [{"value": name, "description": text} for name, text in asked["options"]]
    one = {"type": "choice", "instructions": "Who helps?", "choices": options}
    return [{**one, "name": asked["asked"]}]


def listed(said: Any) -> Told:
    """The answer in OpenAI's form."""
    (answer,) = said.answers
    if answer.type == "refusal":
        return "refusal", []
    return answer.choice, [(row.value, row.probability) for row in answer.probabilities]


@functools.cache
def ask_openai(url: str) -> tuple[Ask, type[Exception]]:
    import openai

    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)

    def ask(asked: Asked) -> Told:
        model, state = asked["model"], asked["state"]
        return listed(client.decisions.create(model=model, input=state, questions=choices(asked)))

    return ask, openai.OpenAIError


@functools.cache
def ask_typesafe_sdk(url: str) -> tuple[Ask, type[Exception]]:
    from typesafe_sdk import Choice, RetryPolicy, TypeSafeClient, TypeSafeError

    once = RetryPolicy(max_retries=0)
    client = TypeSafeClient(api_key="none", base_url=url.removesuffix("/v1"), retry=once)

    def ask(asked: Asked) -> Told:
        question = Choice(instructions="Who helps?", criteria=dict(asked["options"]))
        questions = {asked["asked"]: question}
        said = client.system_one(model=asked["model"], state=asked["state"], questions=questions)
        answer = said.choices[asked["asked"]]
        return answer.choice, list(answer.probabilities.items())

    return ask, TypeSafeError


@functools.cache
def ask_litellm(url: str) -> tuple[Ask, type[Exception]]:
    import litellm

    litellm.suppress_debug_info = True  # it is printed among the answers

    def ask(asked: Asked) -> Told:
        model, state = f"openai/{asked['model']}", asked["state"]
        server = {"api_base": url, "api_key": "none", "max_retries": 0}
        return listed(
            litellm.decisions(model=model, input=state, questions=choices(asked), **server)
        )

    return ask, Exception  # its errors have no class in common


def main() -> None:
    """Answer every line of standard input."""
    maker = globals()[f"ask_{sys.argv[1]}"]
    for asked in map(json.loads, sys.stdin):
        ask, error_type = maker(asked["url"])
        try:
            told: Any = ask(asked)
        except error_type as error:
            status = getattr(error, "status_code", None) or getattr(error, "status", None)
            told = type(error).__name__, status
        print(json.dumps(told))


if __name__ == "__main__":
    main()
