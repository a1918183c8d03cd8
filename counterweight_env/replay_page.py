"""A recorded game as one HTML page: a picture a turn, the turns as a list, the solver's verdicts.

The page holds all it needs; it asks for nothing over the network. Without JavaScript it still shows
the last picture and the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from counterweight_env.record import GameRecord
from counterweight_env.scene import NAMES
from counterweight_env.shapes import Picture
from counterweight_env.story import Step, Verdict, story_pictures
from counterweight_env.svg import FONTS, drawings, placed

__all__ = ["page_text"]

STYLE: Final = """
:root{color-scheme:light dark;--paper:#f4f1e8;--ink:#1d2421;--quiet:#5c6b63;--line:#cfd6cf;
--mark:#dcebe2;--kept:#19723a;--gave:#b3261e}
@media (prefers-color-scheme:dark){:root{--paper:#15211b;--ink:#edf2ec;--quiet:#9db3a7;
--line:#33483d;--mark:#244136;--kept:#6fd391;--gave:#ff8a80}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.45 FONTS}
main{max-width:1120px;margin:0 auto;padding:14px;display:grid;gap:14px;
grid-template-columns:minmax(0,1fr)}
@media (min-width:860px){main{grid-template-columns:minmax(0,3fr) minmax(300px,2fr)}}
header{grid-column:1/-1}
h1{font-size:20px;margin:0}
p{margin:2px 0;color:var(--quiet)}
.frame{display:none;width:100%;height:auto;max-width:83vh;margin:0 auto;border-radius:10px}
.frame.on{display:block}
nav{display:flex;gap:6px;align-items:center;margin-top:8px}
nav input{flex:1;min-width:60px;accent-color:var(--kept)}
button{font:inherit;color:inherit;background:none;border:1px solid var(--line);border-radius:6px;
padding:5px 10px;cursor:pointer}
button:hover{background:var(--mark)}
output{min-width:64px;text-align:right;color:var(--quiet);font-variant-numeric:tabular-nums}
ol{list-style:none;margin:0;padding:0;overflow:auto;border:1px solid var(--line);
border-radius:10px}
@media (min-width:860px){ol{max-height:calc(100vh - 110px)}}
li button{display:block;width:100%;text-align:left;border:0;border-bottom:1px solid var(--line);
border-radius:0;padding:6px 10px}
li:last-child button{border-bottom:0}
li button[aria-current]{background:var(--mark)}
.turn{color:var(--quiet);font-variant-numeric:tabular-nums;margin-right:6px}
.verdict{display:block;font-size:13px;color:var(--quiet)}
.kept{color:var(--kept)}
.gave{color:var(--gave);font-weight:600}
""".replace("FONTS", FONTS).strip()

SCRIPT: Final = """
"use strict";
const frames = [...document.querySelectorAll(".frame")];
const turns = [...document.querySelectorAll("li button")];
const slider = document.querySelector("input");
const output = document.querySelector("output");
const play = document.getElementById("play");
const last = frames.length - 1;
let now = last;
let timer = null;
function show(step) {
  frames[now].classList.remove("on");
  turns[now].removeAttribute("aria-current");
  now = Math.min(Math.max(step, 0), last);
  frames[now].classList.add("on");
  turns[now].setAttribute("aria-current", "step");
  const list = turns[now].closest("ol");
  const item = turns[now].parentElement;
  if (list.scrollHeight > list.clientHeight) {
    list.scrollTop = item.offsetTop - list.offsetTop - list.clientHeight / 2;
  }
  slider.value = now;
  output.textContent = now + " / " + last;
}
function stop() {
  clearInterval(timer);
  timer = null;
  play.textContent = "Play";
}
function toggle() {
  if (timer !== null) return stop();
  if (now === last) show(0);
  play.textContent = "Pause";
  timer = setInterval(() => (now === last ? stop() : show(now + 1)), 1200);
}
function go(step) { stop(); show(step); }
const acts = {
  first: () => go(0), back: () => go(now - 1), play: toggle,
  next: () => go(now + 1), last: () => go(last),
};
for (const id of Object.keys(acts)) document.getElementById(id).onclick = acts[id];
turns.forEach((button, step) => { button.onclick = () => go(step); });
slider.oninput = () => go(Number(slider.value));
document.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" }[event.key];
  if (!act || event.target === slider) return;
  event.preventDefault();
  acts[act]();
};
document.querySelector("nav").hidden = false;
show(0);
""".strip()


def page_text(record: GameRecord, steps: Sequence[Step]) -> str:
    """The page.

    Args:
        record: The game.
        steps: What :func:`counterweight_env.story.story` makes of it.

    Returns:
        The text of an HTML file.
    """
    pictures = story_pictures(record, steps)
    title = f"Counterweight, {record.rules}"
    names = " against ".join(
        f"{seat} ({name})" for seat, name in zip(NAMES, record.players, strict=True)
    )
    last = len(steps) - 1
    frames = "\n".join(_frame(picture, number == last) for number, picture in enumerate(pictures))
    turns = "\n".join(_turn(number, step) for number, step in enumerate(steps))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_safe(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<svg width="0" height="0" style="position:absolute" aria-hidden="true">{drawings(pictures)}</svg>
<main>
<header>
<h1>{_safe(title)}</h1>
<p>{_safe(names)}. {_safe(_result(record))} {_safe(_verdicts(steps))}</p>
</header>
<section>
{frames}
<nav hidden>
<button id="first" aria-label="the deal">&#124;&lt;</button>
<button id="back" aria-label="one turn back">&lt;</button>
<button id="play">Play</button>
<button id="next" aria-label="one turn on">&gt;</button>
<button id="last" aria-label="the end">&gt;&#124;</button>
<input type="range" min="0" max="{last}" value="{last}" aria-label="turn">
<output></output>
</nav>
</section>
<ol>
{turns}
</ol>
</main>
<script>
{SCRIPT}
</script>
</body>
</html>
"""


def _safe(text: str) -> str:
    return escape("".join(letter if letter.isprintable() else "?" for letter in text))


def _frame(picture: Picture, shown: bool) -> str:
    classes = "frame on" if shown else "frame"
    return (
        f'<svg class="{classes}" viewBox="0 0 {picture.width} {picture.height}" role="img" '
        f'font-family="{FONTS}"><title>{_safe(picture.title)}</title>{placed(picture)}</svg>'
    )


def _turn(number: int, step: Step) -> str:
    verdict = step.verdict
    said = ""
    if verdict is not None:
        kind = {True: "kept", False: "gave", None: "open"}[verdict.kept]
        said = f'<span class="verdict {kind}">{_safe(_explained(verdict))}</span>'
    return f'<li><button><span class="turn">{number}</span>{_safe(step.text)}{said}</button></li>'


def _explained(verdict: Verdict) -> str:
    """The verdict, and how many of the moves were right."""
    text = str(verdict)
    if verdict.moves > 1 and verdict.before in (0, 1):
        right = len(verdict.best)
        text += f"; {right} of {verdict.moves} moves " + ("keep it" if right != 1 else "keeps it")
    return text


def _result(record: GameRecord) -> str:
    lead = record.returns[0]
    return "A draw." if lead == 0 else f"{NAMES[0 if lead > 0 else 1]} wins."


def _verdicts(steps: Sequence[Step]) -> str:
    judged = [step for step in steps if step.verdict is not None]
    if not judged:
        return ""
    wrong = sum(step.verdict is not None and step.verdict.kept is False for step in judged)
    count = "1 turn gives" if wrong == 1 else f"{wrong or 'No'} turns give"
    if wrong == 0:
        count = "No turn gives"
    return f"{count} away value after the stock has run out."
