# %% [markdown]
# # The Flux notebook: what does a GPU change for a small network that sees all of MNIST in every step?

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
