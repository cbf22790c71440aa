"""A second call of ``install``: for the same architecture, and for one that the DSL was not imported for."""

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host import dsl
from cutegen_nb.simulator.host.simulation import install


def refused(call):
    try:
        call()
    except ConfigurationError as error:
        return str(error)
    return "not refused"


def check(simulation):
    return {
        "again": install("sm_80") is simulation,
        "other": refused(lambda: install("sm_90a")),
        "imported": refused(lambda: dsl.install(simulation, "sm_90a")),
    }
