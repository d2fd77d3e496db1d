"""What the tests of the page share: an application with small models, and a visitor in a browser's place."""

from __future__ import annotations

import re
import time
from typing import Any

from fastapi.testclient import TestClient

from acceptability.serve.app import create_app
from acceptability.serve.security import Settings

PAIRS = "good,bad,phenomenon\nThe boys were late.,The boys was late.,agreement\nCats sleep.,Sleep cats.,order\n"


def settings(**changed: Any) -> Settings:
    """Return settings for a test: this machine, two small models."""
    about: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "token": None, "models": ("trigram", "uniform")}
    return Settings(**about | changed)


class Visitor:
    """A browser, more or less: it keeps cookies and sends forms with the value that they carry."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.get("/")

    @property
    def value(self) -> str:
        return self.client.cookies["acceptability_visitor"]

    def get(self, address: str, **more: Any) -> Any:
        return self.client.get(address, **more)

    def post(self, address: str, data: dict[str, Any], **more: Any) -> Any:
        return self.client.post(address, data={"visitor": self.value, **data}, **more)

    def finished(self, address: str) -> dict[str, Any]:
        """Wait for a job and return its state."""
        name = re.search(r"/jobs/([\w-]+)", address)[1]
        for _ in range(2400):
            job = self.get(f"/api/jobs/{name}").json()
            if job["state"] not in ("waiting", "running"):
                return job
            time.sleep(0.05)
        raise AssertionError(f"the job does not end: {job}")


def visiting(**changed: Any) -> TestClient:
    """Return a client of an application; use it in a with statement, which starts and ends the application."""
    return TestClient(create_app(settings(**changed)), base_url="http://127.0.0.1:8765", follow_redirects=True)
