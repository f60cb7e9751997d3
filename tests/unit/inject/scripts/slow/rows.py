"""A table is read row by row."""

import pandas
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.table = pandas.DataFrame({name: range(200) for name in "abcd"})

    def __len__(self):
        return len(self.table)

    def __getitem__(self, number):
        row = self.table.iloc[number]
        return torch.tensor(row.drop("d").values.astype("float32"))


torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.00001)
for _ in range(3):
    for x in DataLoader(Rows(), 8):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
