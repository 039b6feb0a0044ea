#!/bin/sh
# Installs a clone of this project on a build server: install.sh CLONE [INDEX]
#
# Each file must have the hash that requirements-run.txt knows. INDEX is the address of an index with torch's build without
# CUDA, for Linux on x86 and Python 3.11, whose hash is known too. Without it torch's own build comes, and with it CUDA's
# libraries in the versions that torch names: these alone have no hash here.
set -eu
clone="$1"
if [ -n "${2:-}" ]; then pip install --require-hashes --no-deps --index-url "$2" -r "$clone/requirements-cpu.txt"; fi
pip install --require-hashes --no-deps -r "$clone/requirements-run.txt"
pip install --no-build-isolation "$clone"
