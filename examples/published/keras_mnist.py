# %% [markdown]
# # The Keras example: an epoch, a test and the whole training on each device.

# %%
import trainmark

records = trainmark.run("mnist-mlp512", published=True, out="published-mnist-mlp512", resume=True)
records

# %%
compared = records.compare(by="device")
compared

# %%
compared.save_chart("mnist-mlp512.svg", "times")
compared.chart("times")
