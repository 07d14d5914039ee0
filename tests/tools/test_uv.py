from tools.uv import parse_pip_settings, translate_pip_settings

LISTING = """\
:env:.find-links='/wheels /more wheels'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.find-links='/ignored'
global.index-url='https://mirror.example/simple'
install.index-url='https://nearer.example/simple'
list.format='json'
"""


def test_nearest_pip_setting_wins_and_other_commands_settings_are_left_out() -> None:
    settings = parse_pip_settings(LISTING)
    assert settings["index-url"] == "https://nearer.example/simple"
    assert settings["find-links"] == "/wheels /more wheels"
    assert "format" not in settings


def test_uv_is_told_every_source_that_pip_knows() -> None:
    assert translate_pip_settings(parse_pip_settings(LISTING)) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://nearer.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_FIND_LINKS": "/wheels,/more,wheels",
    }


def test_without_pip_settings_uv_keeps_its_own() -> None:
    assert translate_pip_settings(parse_pip_settings("")) == {"UV_INDEX_STRATEGY": "unsafe-best-match"}
