"""Runs an OpenAI-compatible server, like vLLM and others, in its own process, and counts its requests."""

import asyncio
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

asked = most = now = 0


async def complete(request: Request) -> JSONResponse:
    """Answers a chat with its last message, reversed, after a hundredth of a second."""
    global asked, most, now
    asked, now = asked + 1, now + 1
    most = max(most, now)
    try:
        text = (await request.json())["messages"][-1]["content"]
        await asyncio.sleep(0.01)
    finally:  # also when the client was killed
        now -= 1
    return JSONResponse({"choices": [{"message": {"role": "assistant", "content": text[::-1]}}]})


async def counted(request: Request) -> JSONResponse:
    """The number of requests, and the largest number at once."""
    return JSONResponse({"asked": asked, "most": most})


if __name__ == "__main__":
    routes = [Route("/v1/chat/completions", complete, methods=["POST"]), Route("/counted", counted)]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", backlog=4096)
