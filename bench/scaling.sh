#!/usr/bin/env bash
# What `trainmark scale` predicts for each workload, and what it measures here: docs/results/scaling. Needs TRAINMARK_DATA
# with MNIST and at least data_batch_1.bin of CIFAR-10, a machine with nothing else to do, and about 15 minutes on 2 cores.
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
for workload in mnist-mlp32 mnist-mlp128 mnist-mlp512 mnist-cnn cifar10-cnn; do
  say predictions scale "$workload" --backend torch --threads 1 --prediction only
  say another-network scale "$workload" --backend torch --threads 1 --prediction only --link 5,25
done
say measured scale mnist-mlp512 --backend torch --data-parallel 1,2,4 --oversubscribe --plot "$results/mnist-mlp512.svg"
say measured scale mnist-mlp512 --backend torch --data-parallel 1,2 --weak --repeats 3
say measured scale mnist-cnn --backend torch --data-parallel 1,2 --pipeline 1,2 --oversubscribe --repeats 3 --steps 60
say measured scale mnist-mlp128 --backend jax --data-parallel 1,2 --repeats 3
say float64 scale mnist-mlp512 --backend torch --data-parallel 1,2 --pipeline 1,2 --oversubscribe --repeats 1 --steps 100 \
  --precision fp64 --prediction none
