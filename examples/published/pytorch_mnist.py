# %% [markdown]
# # The PyTorch example: is every core busy during training?

# %%
import trainmark

records = trainmark.run("mnist-cnn", published=True, out="published-mnist-cnn", resume=True)
records

# %%
compared = records.compare(by="device")
compared

# %%
compared.save_chart("mnist-cnn.svg", "cores")
compared.chart("cores")
