"""Releases of the DSL that the simulator knows, and sentences for all others."""

from importlib.metadata import PackageNotFoundError

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host import dsl


@pytest.fixture
def installed(monkeypatch):
    """Function that lets a release of the DSL seem to be installed; None for none."""

    def set_version(release):
        def version(name):
            assert name == "nvidia-cutlass-dsl"
            if release is None:
                raise PackageNotFoundError(name)
            return release

        monkeypatch.setattr(dsl, "version", version)

    return set_version


@pytest.mark.parametrize("release", ["4.8.1", "4.8.2", "4.8.13"])
def test_releases_of_the_known_series_are_accepted(installed, release):
    installed(release)
    dsl.check_version()


@pytest.mark.parametrize("release", ["4.8.0", "4.7.3", "4.9.0", "5.0.1", "4.8.1rc1", "4.8.1.dev0"])
def test_any_other_release_is_named_with_the_command_that_helps(installed, release):
    installed(release)
    with pytest.raises(ConfigurationError) as refused:
        dsl.check_version()
    assert f"nvidia-cutlass-dsl {release} is installed" in str(refused.value)
    assert "run `pip install nvidia-cutlass-dsl==4.8.1`" in str(refused.value)


def test_a_missing_package_is_named_with_the_command_that_helps(installed):
    installed(None)
    with pytest.raises(ConfigurationError) as refused:
        dsl.check_version()
    assert str(refused.value) == (
        "nvidia-cutlass-dsl is not installed; run `pip install nvidia-cutlass-dsl==4.8.1`."
    )
