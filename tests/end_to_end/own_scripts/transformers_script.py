"""A script of Transformers: its trainer owns the loop."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
tokens = torch.randint(0, 40, (64, 12))
data = [{"input_ids": row, "labels": row} for row in tokens]
model = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=12, n_embd=16, n_layer=1, n_head=2))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:16]).train()
