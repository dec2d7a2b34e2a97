"""A client library of LibreTranslate, from the package index, asks the server."""

from urllib.error import HTTPError

import pytest

from tests.serving.server.cases import FakeEngine, running

libretranslatepy = pytest.importorskip("libretranslatepy")


def test_a_client_of_libretranslate_is_answered():
    with running(FakeEngine(), api_key="geheim") as client:
        address = f"http://127.0.0.1:{client.port}"
        api = libretranslatepy.LibreTranslateAPI(address, "geheim")
        assert api.translate("Schöne Grüße. Na & du?", "de", "en") == "SCHÖNE GRÜSSE. NA & DU?"
        assert api.translate("zwei\nZeilen", "auto", "en") == "ZWEI\nZEILEN"
        assert [each["code"] for each in api.languages()] == ["de", "en"]
        with pytest.raises(HTTPError, match="400"):
            api.translate("hello", "en", "de")
        with pytest.raises(HTTPError, match="403"):
            libretranslatepy.LibreTranslateAPI(address).translate("a", "de", "en")
