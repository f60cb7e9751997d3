#!/usr/bin/env bash
# Draw every picture in docs/pictures again, from the records in docs/results: the charts of the five published pages, and the report page as a browser shows it.
# Needs trainmark[report], playwright and Debian's chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
results=docs/results pictures=docs/pictures
draw() { trainmark compare "$results"/$1 --plot "$pictures/$2.svg" --chart "$3" >/dev/null; }

draw mnist-mlp32 flux-epoch-times epochs
draw mnist-mlp128 mxnet-execution-times times
draw mnist-mlp512 keras-times times
draw "frameworks/mnist-cnn-torch-fast-cpu-r0-*.json" pytorch-cores cores
draw cifar10-cnn tensorflow-examples-per-second pace
draw main-job speedup speedup

page=$(mktemp --suffix=.html)
trap 'rm "$page"' EXIT
trainmark report "$results/main-job" "$results/frameworks" -o "$page"
python - "$page" "$pictures" <<'PYTHON'
import shutil, sys
from playwright.sync_api import sync_playwright

page, pictures = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    for name, scheme, width, height in (
        ("report-light", "light", 1280, 1700),
        ("report-dark", "dark", 1280, 1700),
        ("report-390", "light", 390, 1400),
    ):
        window = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}).new_page()
        window.goto(f"file://{page}")
        window.wait_for_selector("html[data-drawn=yes]")
        window.screenshot(path=f"{pictures}/{name}.png")
PYTHON
