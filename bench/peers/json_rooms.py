"""Rounds of federated training as one would write them without Bowshot: a service of FastAPI that takes tensors as JSON, waits for all
members and answers each of them with the mean; and its client.

    python json_rooms.py PORT
"""

import asyncio
import http.client
import json
import sys

import numpy

PATIENCE = 60


class Room:
    """A member's side, as `Room` of tests/models/federated.py is one of Bowshot's."""

    def __init__(self, port, name, members):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * PATIENCE)
        self.path = f"/rooms/{name}/{members}"

    def combined(self, weights):
        body = json.dumps({name: weight.tolist() for name, weight in weights.items()})
        self.connection.request("POST", self.path, body, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        return {name: numpy.array(weight, numpy.float32) for name, weight in json.loads(answer.read()).items()}

    def leave(self):
        self.connection.close()


def service():
    from fastapi import FastAPI, Request, Response

    app, rooms = FastAPI(), {}

    @app.post("/rooms/{name}/{members}")
    async def contribute(name: str, members: int, request: Request):
        given = json.loads(await request.body())
        given = {tensor: numpy.array(numbers, numpy.float32) for tensor, numbers in given.items()}
        # All members of a round hold the same one; the next contribution begins another.
        contributions, done = rooms.setdefault(name, ([], asyncio.get_running_loop().create_future()))
        contributions.append(given)
        if len(contributions) == members:
            del rooms[name]
            mean = {tensor: (sum(one[tensor] for one in contributions) / members).tolist() for tensor in given}
            done.set_result(json.dumps(mean))
        return Response(await asyncio.wait_for(asyncio.shield(done), PATIENCE), media_type="application/json")

    return app


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(service(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
