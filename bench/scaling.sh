#!/usr/bin/env bash
# What `trainmark scale` measures here: docs/results/scaling. Needs TRAINMARK_DATA
# with MNIST, a machine with nothing else to do, and about 10 minutes on 2 cores.
#
#   bench/scaling.sh [FOLDER]      docs/results/scaling if not given
set -euo pipefail
cd "$(dirname "$0")/.."
results=${1:-docs/results/scaling}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$results"

say() { # name of the file, arguments: the command, what it printed, and its exit code
  local file="$results/$1.txt"
  shift
  printf '$ trainmark %s\n' "$*" >>"$file"
  trainmark "$@" --out "$scratch" >>"$file" 2>"$scratch/err" || printf 'exit code %s\n' $? >>"$file"
  grep '^note' "$scratch/err" >>"$file" || true
  printf '\n' >>"$file"
}

rm -f "$results"/*.txt
say measured scale mnist-mlp512 --backend torch --data-parallel 1,2,4 --oversubscribe --plot "$results/mnist-mlp512.svg"
say measured scale mnist-mlp512 --backend torch --data-parallel 1,2 --weak --repeats 3
say measured scale mnist-cnn --backend torch --data-parallel 1,2 --pipeline 1,2 --oversubscribe --repeats 3 --steps 60
say measured scale mnist-mlp128 --backend jax --data-parallel 1,2 --repeats 3
say float64 scale mnist-mlp512 --backend torch --data-parallel 1,2 --pipeline 1,2 --oversubscribe --repeats 1 --steps 100 \
  --precision fp64
