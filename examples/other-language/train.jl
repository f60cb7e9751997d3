# The published MLP of the Flux comparison, reporting its epochs to trainmark. It needs Julia with Flux and MLDatasets.
# NOT TESTED: trainmark's tests have no Julia.
#
#     trainmark measure --device cpu,cuda:0 -- julia train.jl {device}
#
# All it needs is report(): one line of JSON, in one write, to the file that TRAINMARK_HOOK names.

using Flux, MLDatasets, Statistics

const PLACE = get(ENV, "TRAINMARK_HOOK", "")
const HOOK = isempty(PLACE) ? nothing : open(PLACE, append = true)

# jl_hrtime reads the system's monotonic clock, in nanoseconds: CLOCK_MONOTONIC on Linux.
now() = ccall(:jl_hrtime, UInt64, ()) / 1e9

function report(event; more...)
    HOOK === nothing && return
    words = join((", \"$name\": $(value isa Number && isfinite(value) ? value : "\"$value\"")" for (name, value) in more))
    write(HOOK, "{\"trainmark\": 1, \"event\": \"$event\", \"t\": $(now())$words}\n")
    flush(HOOK)
end

report("hello"; language = "Julia $VERSION")

device = length(ARGS) > 0 && startswith(ARGS[1], "cuda") ? gpu : cpu
epochs = length(ARGS) > 1 ? parse(Int, ARGS[2]) : 10
x, labels = MLDatasets.MNIST(split = :train)[:]
x = device(Float32.(reshape(x, 784, :)))
y = device(Flux.onehotbatch(labels, 0:9))
network = device(Chain(Dense(784 => 32, relu), Dense(32 => 10)))
state = Flux.setup(Adam(), network)

for _ in 1:epochs
    report("begin")
    loss, gradients = Flux.withgradient(net -> Flux.logitcrossentropy(net(x), y), network)
    Flux.update!(state, network, gradients[1])
    hits = mean(Flux.onecold(cpu(network(x))) .== Flux.onecold(cpu(y)))  # copies the result to the host, so the GPU has finished
    report("epoch"; loss = loss, accuracy = hits, examples = size(x, 2), steps = 1)
end
