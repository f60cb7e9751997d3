#!/usr/bin/env bash
# Makes docs/results: records, and the tables that `compare` prints of them. Needs TRAINMARK_DATA with MNIST and at least
# data_batch_1.bin of CIFAR-10, a machine with nothing else to do, and about 90 minutes on 2 cores.
#
#   bench/results.sh [NAME...]     all, or some of: mnist-mlp32 mnist-mlp128 mnist-cnn mnist-mlp512 cifar10-cnn
#                                  fast-against-idiomatic main-job frameworks overhead sampler limits explain calibration
#                                  scaling; only if named: peers (an hour). GPUs: python bench/gpu
set -euo pipefail
cd "$(dirname "$0")/.."
results=docs/results

published() {
  trainmark run "$1" --published --backend torch "${@:2}" --out "$results/$1"
  trainmark compare "$results/$1" --published --format markdown >"$results/$1/README.md"
}

comparison() {
  trainmark run "${@:2}" --out "$results/$1"
  trainmark compare "$results/$1" --format markdown >"$results/$1/README.md"
}

for name in "${@:-mnist-mlp32 mnist-mlp128 mnist-cnn mnist-mlp512 cifar10-cnn fast-against-idiomatic main-job frameworks overhead sampler limits explain calibration scaling}"; do
  for what in $name; do
    rm -rf "${results:?}/$what"
    case $what in
      mnist-mlp32) published mnist-mlp32 --style idiomatic ;;
      mnist-cnn) published mnist-cnn --style fast ;;
      cifar10-cnn) published cifar10-cnn --style fast --log-every 10 ;;
      mnist-mlp128 | mnist-mlp512) published "$what" ;;
      fast-against-idiomatic) comparison "$what" mnist-mlp128 --backend torch --repeats 7 ;;
      main-job) comparison "$what" ;;
      frameworks) comparison "$what" mnist-mlp128 mnist-mlp512 mnist-cnn --backend torch,jax,keras --style fast --repeats 3 ;;
      scaling) bench/scaling.sh ;;
      overhead)
        mkdir -p "$results/overhead"
        python bench/overhead.py --out "$results/overhead/pairs.txt" | tee "$results/overhead/printed.txt"
        ;;
      sampler)
        mkdir -p "$results/sampler"
        python bench/overhead.py --sampler 400 | tee "$results/sampler/printed.txt"
        python bench/overhead.py --sampler 200 --times 4 | tee -a "$results/sampler/printed.txt"
        python bench/sampler.py | tee -a "$results/sampler/printed.txt"
        ;;
      peers)
        mkdir -p "$results/peers"
        python bench/peers.py --out "$results/peers/run.json"
        python bench/peers.py --show "$results/peers/run.json" >"$results/peers/README.md"
        ;;
      limits)
        mkdir -p "$results/limits"
        python bench/limits.py --rounds 6 | tee "$results/limits/printed.txt"
        ;;
      explain)
        mkdir -p "$results/explain"
        python bench/unexplained.py | tee "$results/explain/unexplained.txt"
        python bench/explain.py mnist-mlp128 | tee "$results/explain/advice.txt"
        python bench/planted.py --seconds 40 | tee "$results/explain/planted.txt"
        ;;
      calibration)
        mkdir -p "$results/calibration"
        pool=$(mktemp -d)
        python bench/calibrate.py pool "$pool"
        python bench/calibrate.py judge "$pool" --out "$results/calibration/judged.txt"
        python bench/calibrate.py bar "$pool/bar" --out "$results/calibration/bar.txt"
        rm -r "$pool"
        ;;
      *)
        echo "unknown result: $what" >&2
        exit 2
        ;;
    esac
  done
done
