# %% [markdown]
# # TensorFlow's CIFAR-10 tutorial: how many examples per second?

# %%
import trainmark

records = trainmark.run("cifar10-cnn", published=True, out="published-cifar10-cnn", resume=True)
records

# %%
compared = records.compare(by="device")
compared

# %%
compared.save_chart("cifar10-cnn.svg", "pace")
compared.chart("pace")
