# %% [markdown] # The Flux notebook: how much does a GPU help a small network that trains on all of
# MNIST in every step?

# %%
import trainmark

records = trainmark.run("mnist-mlp32", published=True, out="published-mnist-mlp32", resume=True)
records

# %%
compared = records.compare(by="device")
compared

# %%
compared.save_chart("mnist-mlp32.svg", "epochs")
compared.chart("epochs")
