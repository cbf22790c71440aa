"""The server that stands for a model's: requests are kept, answers come in order."""

import json
import urllib.request

from cutegen_nb.testing.model_server import MODELS, ModelServer, answers


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer k"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def test_the_last_behaviour_repeats_and_every_request_is_kept():
    with ModelServer([answers("one"), answers("two")]) as server:
        replies = [
            post(f"{server.url}/chat/completions", {"n": number, "stream": True}) for number in range(3)
        ]
    assert [("one" in reply, "two" in reply) for reply in replies] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert [one["n"] for one in server.requests] == [0, 1, 2]
    assert server.keys == ["Bearer k"] * 3


def test_its_models_are_listed():
    with ModelServer([answers("")]) as server, urllib.request.urlopen(f"{server.url}/models") as answer:
        assert [one["id"] for one in json.load(answer)["data"]] == list(MODELS)
