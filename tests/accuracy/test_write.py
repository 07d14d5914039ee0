from tests.accuracy.write import PAGE, page


def test_the_page_is_what_the_code_gives() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make accuracy writes it anew"
