"""An option is stated once, as a field of settings: commands and functions take it from there."""

import inspect

import pytest

import unswayed as us
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import BackendSettings
from unswayed.base.arguments import Settings, options_of
from unswayed.cli import COMMANDS, command_of, main
from unswayed.prompts import AskOptions
from unswayed.sources import DataOptions

TAKEN = {
    "audit": (us.audit, (AuditSettings, AskOptions, DataOptions, BackendSettings)),
    "calibrate": (us.calibrate, (AskOptions, DataOptions, BackendSettings)),
    "judge": (us.Judge.__init__, (AskOptions, BackendSettings)),
    "filter": (None, (AskOptions, DataOptions, BackendSettings)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_commands_and_functions_share_the_options_of_settings(name: str) -> None:
    function, kinds = TAKEN[name]
    typed = inspect.signature(command_of(name)).parameters
    taken = {} if function is None else inspect.signature(function).parameters
    for kind in kinds:
        for option in options_of(kind):
            (said,) = typed[option.name].annotation.__metadata__
            switch = "no-" if option.is_off_switch else ""
            assert said.default == f"--{switch}{option.name.replace('_', '-')}"
            assert (said.help, said.min) == (option.help, option.least)
            default = typed[option.name].default
            assert default == (False if option.is_off_switch else option.typed_default)
            if function is not None:
                assert taken[option.name].default == option.default
                assert f"    {option.name}: " in (function.__doc__ or "")


def test_help_says_what_each_command_says_about_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for name in COMMANDS:
        assert " ".join((command_of(name).__doc__ or "").split()[:5]) in said


@pytest.mark.parametrize("kind", [AuditSettings, AskOptions, DataOptions, BackendSettings])
def test_settings_of_no_options_are_the_defaults(kind: type[Settings]) -> None:
    assert kind.of({option.name: None for option in options_of(kind)}) == kind()


def test_options_are_laid_over_settings_that_are_given_whole() -> None:
    base = BackendSettings(timeout=3.0, batch_tokens=7)
    assert BackendSettings.of({"timeout": None, "max_retries": 1, "other": 2}, base) == (
        BackendSettings(timeout=3.0, batch_tokens=7, max_retries=1)
    )


def test_an_audit_in_python_names_its_margin_as_the_command_does() -> None:
    run = us.audit(items="tiny-judge", limit=12, methods="direct", resamples=100, margin=2.0).run
    assert run["asked"]["margin"] == 2.0
