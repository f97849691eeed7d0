"""`python -m unswayed`, and the installed command."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130


def run() -> None:
    """Run the command line and exit with its code; Ctrl-C ends it with 130 at every moment."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        from unswayed.cli import main

        _end(main())  # whoever started it has decided about interrupts (nohup)

    signal.signal(signal.SIGINT, _leave)  # before the imports, in which nothing is to be tidied up
    sys.unraisablehook = _leave_if_interrupted
    from unswayed.cli import main

    code = INTERRUPTED
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = main()
        finally:
            # Python puts handlers back while it ends, so that a signal would kill it then
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        pass
    if code == INTERRUPTED:
        # an interrupt within exec() makes Python end as if it had never been caught
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        _leave()
    _end(code)


def _end(code: int) -> NoReturn:
    """Exit; one of several processes at once.

    Threads that torch's process groups leave behind abort it now and then while Python ends, which a
    launcher takes for a failure of a run that has finished.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _leave_if_interrupted(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python drops what is raised while it frees an object, an interrupt too."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _leave()
    sys.__unraisablehook__(unraisable)


def _leave(*signal_and_frame: object) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    run()
