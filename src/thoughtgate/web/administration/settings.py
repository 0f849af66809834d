"""The settings page: the config of this console, and where each value came from."""

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.status.settings_view import describe_settings
from thoughtgate.web.console_context import ConsoleContext


def settings_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the settings; nothing can be changed here."""
    loaded = context.loaded
    if loaded is None:
        text = "This console was started without a config."
        return context.render_message(request, 404, "No settings", text)
    wanted = request.query_params.get("show") == "given"
    sections = describe_settings(loaded, context.environ)
    if wanted:
        kept = [[row for row in one.rows if row.source != "default"] for one in sections]
        sections = [
            one._replace(rows=rows) for one, rows in zip(sections, kept, strict=True) if rows
        ]
    return context.render_page(
        request,
        "settings.html",
        sections=sections,
        only_given=wanted,
        sources=loaded.sources,
        warnings=loaded.warnings,
        state=context.state,
        record=str(context.record.path or ""),
        is_shared=context.location is not None and context.location.is_shared,
    )
