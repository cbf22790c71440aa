from __future__ import annotations

import pytest

from cutegen_nb.authors.profile_file import EXAMPLE, config_path, find_profile, read_profiles
from cutegen_nb.authors.server_profile import Api, Price
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.wiring import settings_from_environment

KEY = "sk-proj-0123456789abcdefghij"


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return path

    return write


def test_the_example_that_is_shown_is_read(written):
    local, hosted = read_profiles(written(EXAMPLE))
    assert (local.name, local.api, local.price, local.key_variable) == ("local", Api.CHAT, None, "")
    assert (hosted.api, hosted.key_variable) == (Api.RESPONSES, "OPENAI_API_KEY")
    assert hosted.limits.max_output_tokens == 32000
    assert hosted.price == Price(input=1.0, output=4.0, cached=0.25, as_of="2026-11-01")


def test_no_file_is_no_profiles(tmp_path):
    assert read_profiles(tmp_path / "config.toml") == ()


def test_the_file_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("CUTEGEN_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "cutegen_nb" / "config.toml"
    monkeypatch.setenv("CUTEGEN_CONFIG", "/elsewhere/c.toml")
    assert str(config_path()) == "/elsewhere/c.toml"


@pytest.mark.parametrize(
    "line",
    [
        f'key = "{KEY}"',
        f'api_key = "{KEY}"',
        f'token = "{KEY}"',
        f'key_variable = "{KEY}"',
        f'note = "{KEY}"',
        f'[profile.a.limits]\nretries = "{KEY}"',
        f'[profile.a.price]\ninput = 1\noutput = 1\nas_of = "{KEY}"',
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(written, line):
    path = written(f'[profile.a]\nbase_url = "https://x.example/v1"\nmodel = "m"\n{line}\n')
    with pytest.raises(ConfigurationError, match="put the key into an environment variable") as caught:
        read_profiles(path)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[profile.a", "is not TOML"),
        ('[profile.replay]\nmodel = "m"', "give it another name"),
        ('[profile."a:b"]\nmodel = "m"', "give it another name"),
        ("profile = 3", r"a line \[profile.NAME\]"),
        ("[profile]\na = 3", r"a line \[profile.NAME\]"),
        ("[profile.a]", r"\[profile.a\] in .* names no model"),
        ('[profile.a]\nmodel = "m"\nbaseurl = "x"', "did you mean base_url"),
        ('[profile.a]\nmodel = "m"\napi = "rest"', r"'rest': it is \"chat\" or \"responses\""),
        ("[profile.a]\nmodel = 3", "put it into quotation marks"),
        ('[profile.a]\nmodel = "m"\ntemperature = "warm"', "is no number"),
        ('[profile.a]\nmodel = "m"\nkey_variable = "MY KEY"', "not the name of an environment variable"),
        ('[profile.a]\nmodel = "m"\nlimits = 3', r"write it below \[profile.NAME.limits\]"),
        ('[profile.a]\nmodel = "m"\n[profile.a.limits]\nwhole = 3', "did you mean whole_s"),
        ('[profile.a]\nmodel = "m"\n[profile.a.limits]\nconcurrency = 0', "give a whole number from 1"),
        ('[profile.a]\nmodel = "m"\n[profile.a.limits]\nretries = 1.5', "give a whole number from 0"),
        ('[profile.a]\nmodel = "m"\n[profile.a.limits]\nwhole_s = true', "is no number"),
        ('[profile.a]\nmodel = "m"\n[profile.a.price]\ninput = 1', "needs both input and output"),
        ('[profile.a]\nmodel = "m"\n[profile.a.price]\ninput = 1\noutput = -1', "is below 0"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(written, text, words):
    with pytest.raises(ConfigurationError, match=words):
        read_profiles(written(text))


def test_openai_s_key_goes_to_no_other_server_unless_the_file_says_so(written):
    text = '[profile.a]\nmodel = "m"\n[profile.b]\nmodel = "m"\nbase_url = "https://x.example/v1"\n'
    hosted, other = read_profiles(written(text))
    assert (hosted.key_variable, other.key_variable) == ("OPENAI_API_KEY", "")


def test_a_profile_s_key_goes_to_no_other_address_that_is_given_beside_it(written, monkeypatch):
    path = written('[profile.a]\nmodel = "m"\n')
    monkeypatch.setenv("CUTEGEN_CONFIG", str(path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert settings_from_environment(profile="a").key == KEY
    elsewhere = settings_from_environment(profile="a", base_url="http://elsewhere.example/v1")
    assert elsewhere.server.base_url == "http://elsewhere.example/v1"
    assert elsewhere.key == ""


def test_a_profile_that_is_not_there_is_answered_with_the_nearest(written, tmp_path):
    path = written('[profile.hosted]\nmodel = "m"\n')
    with pytest.raises(ConfigurationError, match=r"no profile 'hostd' in .*; did you mean hosted?"):
        find_profile("hostd", path)
    with pytest.raises(ConfigurationError, match=r"write \[profile.a\] with base_url and model into"):
        find_profile("a", tmp_path / "none.toml")


def test_a_date_as_toml_knows_them_is_a_date_too(written):
    text = '[profile.a]\nmodel = "m"\n[profile.a.price]\ninput = 1\noutput = 2\nas_of = 2026-11-01\n'
    assert read_profiles(written(text))[0].price.as_of == "2026-11-01"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"cannot read .*UTF-8"):
        read_profiles(tmp_path / "config.toml")
