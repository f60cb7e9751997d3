# %% [markdown]
# # The MXNet comparison: how long does each part of training take?

# %%
import trainmark

records = trainmark.run("mnist-mlp128", published=True, out="published-mnist-mlp128", resume=True)
records

# %%
compared = records.compare(by="device")
compared

# %%
compared.save_chart("mnist-mlp128.svg", "times")
compared.chart("times")
