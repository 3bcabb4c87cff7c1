"""A finished Responses object told as the stream of events that would have led to it. It decides nothing."""

from collections.abc import Iterator

from tests.standins.vendors.refusals import Raw
from tests.standins.vendors.surfaces import frame, pieces


def response_events(response: Raw) -> Iterator[bytes]:
    for number, event in enumerate(_events(response)):
        yield frame({**event, "sequence_number": number}, event["type"])


def _events(response: Raw) -> Iterator[Raw]:
    opening = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    opening["error"] = None
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        yield from _item(index, item)
    yield {"type": f"response.{response['status']}", "response": response}


def _item(index: int, item: Raw) -> Iterator[Raw]:
    place = {"output_index": index}
    yield {"type": "response.output_item.added", **place, "item": _opened(item)}
    inner = {"reasoning": _reasoning, "message": _message, "function_call": _call}[item["type"]]
    yield from ({**event, **place, "item_id": item["id"]} for event in inner(item))
    yield {"type": "response.output_item.done", **place, "item": item}


def _opened(item: Raw) -> Raw:
    if item["type"] == "reasoning":
        # facts/llm.md 3: encrypted_content is whole only in output_item.done
        return {**item, "summary": [], "encrypted_content": item["encrypted_content"][:20]}
    if item["type"] == "message":
        return {**item, "content": [], "status": "in_progress"}
    return {**item, "arguments": "", "status": "in_progress"}


def _reasoning(item: Raw) -> Iterator[Raw]:
    for at, part in enumerate(item["summary"]):
        place = {"summary_index": at}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _message(item: Raw) -> Iterator[Raw]:
    for at, part in enumerate(item["content"]):
        place = {"content_index": at}
        key = "text" if part["type"] == "output_text" else "refusal"
        more: Raw = {"logprobs": []} if key == "text" else {}
        yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
        for piece in pieces(part[key]):
            yield {"type": f"response.{part['type']}.delta", **place, "delta": piece, **more}
        yield {"type": f"response.{part['type']}.done", **place, key: part[key], **more}
        yield {"type": "response.content_part.done", **place, "part": part}


def _call(item: Raw) -> Iterator[Raw]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    arguments, name = item["arguments"], item["name"]
    yield {"type": "response.function_call_arguments.done", "arguments": arguments, "name": name}
