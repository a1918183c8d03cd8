"""What the documentation's site needs beyond MkDocs; ``mkdocs.yml`` names this file.

- Pages link to files of the repository that lie outside ``docs/``, such as a JSON Schema. The site
  gets a copy of each, under ``files/``.
- Pages are written for GitHub too, where a table or a list may follow a line of text directly.
- What a strict build must not let pass: a table that came out as text, and anything that a browser
  would load from elsewhere.
- Options such as ``--deals``, and intervals in tables, are not broken over lines.
- Docstrings name other objects by the roles of Sphinx, such as ``:class:`Rules```. On the site they
  are links where the reference has the object under that name, and code elsewhere.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks")  # a warning there ends a strict build

LINK = re.compile(r"\]\(\.\./(?P<path>[\w./-]+?)(?=[#)])")
TABLE_LINE = re.compile(r"^\|[-: |]+\|$", re.MULTILINE)
LOADED = re.compile(r'<(?:img|link|script)\b[^>]*\s(?:href|src)="((?:https?:)?//[^"]*)"')
CODE = re.compile(r"(?<!<pre>)<code>[^<]*</code>")
OPTION = re.compile(r"(?<=[\s>])--?\w[\w-]*")
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
INTERVAL = re.compile(r"\([+\-\d.%]+ to [+\-\d.%]+\)")
WHOLE = r'<span class="whole">\g<0></span>'
ROLE = re.compile(r":(?:attr|class|exc|func|meth|mod):<code>~?(?P<name>[\w.]+)</code>")


def on_files(files: Any, config: Any) -> Any:
    """Adds the files that pages link to outside ``docs/``."""
    root = Path(config.config_file_path).parent
    for page in list(files.documentation_pages()):
        for match in LINK.finditer(page.content_string):
            target = (root / match["path"]).resolve()
            uri = f"files/{match['path']}"
            if target.is_file() and target.is_relative_to(root) and uri not in files.src_uris:
                files.append(File.generated(config, uri, abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Points those links to the copies, and sets tables and lists apart from the text above."""

    def moved(match: re.Match[str]) -> str:
        uri = f"files/{match['path']}"
        return f"]({uri}" if uri in files.src_uris else match[0]

    return set_apart(LINK.sub(moved, markdown) if "/" not in page.file.src_uri else markdown)


def set_apart(markdown: str) -> str:
    """Adds an empty line above each table and list that has none, outside of code."""
    lines: list[str] = []
    in_code = False
    above = ""
    for line in markdown.splitlines():
        fence = line.startswith("```")
        begins_table = line.startswith("|") and not above.startswith("|")
        begins_list = line.startswith("- ") and not above.startswith(("- ", "  "))
        if above and not in_code and (begins_table or begins_list):
            lines.append("")
        lines.append(line)
        in_code ^= fence
        above = line
    return "\n".join(lines) + "\n"


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Keeps lines from breaking; turns the roles of Sphinx into links that need not resolve."""
    for paragraph in re.findall(r"<p>.*?</p>", html, re.DOTALL):
        if TABLE_LINE.search(paragraph):
            log.warning("%s: a table came out as text: %s", page.file.src_uri, paragraph)
    html = CODE.sub(lambda code: OPTION.sub(WHOLE, code[0]), html)
    html = CELL.sub(lambda cell: INTERVAL.sub(WHOLE, cell[0]), html)
    link = r'<autoref optional identifier="\g<name>"><code>\g<name></code></autoref>'
    return ROLE.sub(link, html)


def on_post_page(output: str, page: Any, **_: Any) -> None:
    """Looks for what would be loaded over the network."""
    for address in LOADED.findall(output):
        log.warning("%s loads %s", page.file.src_uri, address)
