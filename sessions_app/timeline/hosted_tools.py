"""Parsers for tools that the provider runs: file search, web search, image generation. Call and output are one item."""

from __future__ import annotations

from memadmin.values.shortened import left_out_of
from sessions_app.timeline.blocks import Block, TextBlock
from sessions_app.timeline.calls import Asked, Output, failed, status_state
from sessions_app.timeline.events import ToolState
from sessions_app.timeline.media import link, picture_from_base64
from sessions_app.timeline.values import Fields, as_fields, fields_in, joined, list_in, one_line, text_in


def file_search(fields: Fields) -> Asked:
    return Asked("File search", joined(list_in(fields, "queries")))


def file_search_output(fields: Fields) -> Output:
    results = fields.get("results")
    if not isinstance(results, list):
        return Output(state=status_state(fields), notes=("its results were not stored",))
    return Output(tuple(_found_file(as_fields(result)) for result in results), status_state(fields))


def _found_file(result: Fields) -> TextBlock:
    name = one_line(result.get("filename") or result.get("file_id") or "file", 120)
    score = result.get("score")
    label = f"{name}, score {one_line(score, 20)}" if score is not None else name
    return TextBlock(text_in(result, "text"), label)


def web_search(fields: Fields) -> Asked:
    action = fields_in(fields, "action")
    match action.get("type"):
        case "open_page":
            return Asked("Opened page", one_line(action.get("url") or ""), _page(action))
        case "find_in_page":
            pattern = one_line(action.get("pattern") or "", 80)
            return Asked("Find in page", f"“{pattern}” in {one_line(action.get('url') or '', 100)}", _page(action))
    queries = list_in(action, "queries") or [action.get("query") or ""]
    return Asked("Web search", joined(queries))


def _page(action: Fields) -> tuple[Block, ...]:
    address = text_in(action, "url")
    return (link(address),) if address else ()


def web_search_output(fields: Fields) -> Output:
    sources = [as_fields(source) for source in list_in(fields_in(fields, "action"), "sources")]
    links = (link(text_in(source, "url"), text_in(source, "title")) for source in sources)
    return Output(tuple(links), status_state(fields))


def image_generation(fields: Fields) -> Asked:
    prompt = text_in(fields, "revised_prompt")
    facts = [one_line(fields[name], 40) for name in ("size", "quality", "output_format") if fields.get(name)]
    return Asked("Generated image", one_line(prompt), (TextBlock(prompt, "Prompt"),) if prompt else (), tuple(facts))


def image_generation_output(fields: Fields) -> Output:
    if error := fields.get("error"):
        details = as_fields(error)
        code = one_line(details.get("code") or "")
        return failed(details.get("message") or error, code)
    result = text_in(fields, "result")
    if not result:
        state = status_state(fields)
        return Output(state=ToolState.IN_PROGRESS if state is ToolState.OK else state, notes=("no picture was stored",))
    return Output((picture_from_base64(result, "Generated image", left_out=left_out_of(result)),), status_state(fields))
