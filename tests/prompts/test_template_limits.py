"""A template that never ends or fills the memory is refused before it is used."""

from pathlib import Path

import pytest

from unswayed.base.errors import TemplateError
from unswayed.prompts import limits
from unswayed.prompts.template import read_template

BODY = "{{ question }}{% for c in candidates %}{{ c.label }} {{ c.text }}{% endfor %}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ 'a' * 10**10 }}", "fills 512 MiB of memory|takes longer than 5 s"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "takes longer than 5 s",
        ),
        (
            "{% set all = namespace(text='ab') %}{% for a in range(40) %}"
            "{% set all.text = all.text ~ all.text %}{% endfor %}",
            "fills 512 MiB of memory|takes longer than 5 s",
        ),
    ],
)
def test_a_template_without_bounds_is_refused(
    tmp_path: Path, text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "(5, 6)" in limits.RENDERING  # seconds; one is enough here
    monkeypatch.setattr(limits, "RENDERING", limits.RENDERING.replace("(5, 6)", "(1, 2)"))
    file = tmp_path / "mine.jinja"
    file.write_text(BODY + text)
    with pytest.raises(TemplateError, match=reason):
        read_template(str(file))


def test_a_template_that_computes_within_bounds_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text(BODY + "{{ '=' * 20 }}{% for a in range(10) %}{{ a }}{% endfor %}")
    assert read_template(str(file)).reply.answer_only
