"""A sentence is HTML with two tags: what comes from data cannot add a third, and nothing is lost."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from judges import plain_run, with_metrics
from unswayed.base.visible import one_line
from unswayed.report.findings import Finding
from unswayed.report.words import clause, environment, joined, plain, say, sentence, spans

HOSTILE = "<b>&amp;</bdi> \n\n {{ x }} </script>"


def test_names_are_isolated_and_what_is_emphasised_is_strong() -> None:
    words = sentence("runs.of_run", HOSTILE, sentence("terminal.no_room", ["a<b", "c"]))
    assert words.startswith("<b><bdi>&lt;b&gt;&amp;amp;&lt;/bdi&gt; {{ x }} &lt;/script&gt;</bdi>")
    assert list(spans(words)) == [
        ("<b>&amp;</bdi> {{ x }} </script>", True),
        (": Not shown here: a<b, c. See the report.", False),
    ]


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_the_plain_text_of_a_name_is_the_name(name: str) -> None:
    words = environment().from_string("{{ name|strong }}{{ name|name }}").render(name=name)
    assert plain(words) == 2 * one_line(name)


def test_a_blank_line_begins_a_paragraph_and_data_cannot() -> None:
    calls = {"planned": 10, "made": 10, "replies": 10, "unparsed": 6}
    assert len(say("bias.unread", Finding(with_metrics(plain_run(), calls=calls)))) == 2
    assert len(say("runs.of_run", "two\n\nlines", "and\n\nmore".replace("\n", " "))) == 1


def test_a_macro_with_nothing_to_say_has_no_paragraph() -> None:
    assert say("tables.notes", []) == ()
    assert not joined(())


def test_lists_are_joined_as_in_a_sentence() -> None:
    listed = environment().from_string("{{ words|listed }} / {{ words|listed('or') }}")
    assert listed.render(words=["a"]) == "a / a"
    assert listed.render(words=["a", "b"]) == "a and b / a or b"
    assert listed.render(words=["a", "b", "<c"]) == "a, b and &lt;c / a, b or &lt;c"


def test_a_reason_joins_a_sentence_without_its_full_stop() -> None:
    assert clause("It needs\nmore. ") == "It needs more"


def test_importing_the_report_loads_no_template_engine() -> None:
    code = (
        "import sys, unswayed.report; print('jinja2' in sys.modules or 'markupsafe' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
