"""A template that never ends or fills the memory is refused before it is used."""

from pathlib import Path

import pytest

from unswayed.base.errors import TemplateError
from unswayed.prompts import limits
from unswayed.prompts.template import read_template

BODY = "{{ question }}{% for c in candidates %}{{ c.label }} {{ c.text }}{% endfor %}"


GROWS = (
    "{% set all = namespace(text='ab') %}{% for a in range(40) %}"
    "{% set all.text = all.text ~ all.text %}{% endfor %}"
)
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ 'a' * 10**10 }}", "fills 512 MiB of memory|takes longer than 5 s"),
        (GROWS, "fills 512 MiB of memory|takes longer than 5 s"),
        (LOOPS, "takes longer than 5 s"),
    ],
    ids=["product", "doubling", "loops"],
)
def test_a_template_without_bounds_is_refused(
    tmp_path: Path, text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = limits.RENDERING
    for real, enough in (("(5, 6)", "(1, 2)"), (f"({512 * 2**20},)", f"({256 * 2**20},)")):
        assert real in shorter  # seconds and bytes; less is enough here
        shorter = shorter.replace(real, enough)
    monkeypatch.setattr(limits, "RENDERING", shorter)
    file = tmp_path / "mine.jinja"
    file.write_text(BODY + text)
    with pytest.raises(TemplateError, match=reason):
        read_template(str(file))


def test_a_template_that_computes_within_bounds_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text(BODY + "{{ '=' * 20 }}{% for a in range(10) %}{{ a }}{% endfor %}")
    assert read_template(str(file)).reply.answer_only
