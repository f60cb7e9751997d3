"""Secrets in words and text: what is masked, and what is harmless."""

from __future__ import annotations

import json

import pytest

from trainmark.errors import UsageError
from trainmark.masking import (
    MASK,
    Secrets,
    is_name_of_secret,
    mask,
    mask_command_line,
    mask_template,
)

VALUE = "hunter2Tiger"


@pytest.mark.parametrize(
    "text",
    [
        "--api-key hunter2Tiger",
        "--api-key=hunter2Tiger",
        "--api_key 'hunter2Tiger with a space' --epochs 3",
        "API_KEY=hunter2Tiger",
        "WANDB_API_KEY=hunter2Tiger python train.py",
        "HF_TOKEN=hunter2Tiger",
        "AWS_SECRET_ACCESS_KEY=hunter2Tiger",
        "apiKey=hunter2Tiger",
        "db.password=hunter2Tiger",
        "++wandb.api_key=hunter2Tiger",
        "--set env=API_KEY=hunter2Tiger",
        "password: hunter2Tiger",
        "api_key = hunter2Tiger",
        "Config(api_key='hunter2Tiger', epochs=3)",
        "{'access_token': 'hunter2Tiger'}",
        '{"secret": "hunter2Tiger"}',
        '{"a": {"password":"hunter2Tiger"}}',
        '{"passwords": ["hunter2Tiger", "hunter2Tiger"]}',
        r'"{\"api_key\": \"hunter2Tiger\"}"',
        r'{"password": "hunter2Tiger\"hunter2Tiger"}',
        "Command '['train.py', '--api-key', 'hunter2Tiger', '--epochs', '3']' failed",
        "password='hunter2Tiger",
        "http://host/x?api_key=hunter2Tiger&epochs=3",
        "https://user:hunter2Tiger@host/x",
        "https://hunter2Tiger@github.com/x",
        "postgres://user:p@hunter2Tiger@db:5432/x",
        "Authorization: Basic hunter2Tiger",
        "Authorization: Bearer hunter2Tiger",
        "sk-hunter2Tiger",
        "sk-proj-hunter2Tiger",
        "/data/hf_hunter2Tiger/config.json",
        "ghp_hunter2Tiger",
        "github_pat_hunter2Tiger",
        "glpat-hunter2Tiger",
        "xoxb-hunter2Tiger",
        "wk_hunter2Tiger",
        "eyJhunter2Tiger.eyJzdWIiOiIx.c2ln",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2Tiger\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_is_masked(text: str) -> None:
    masked = mask(text)
    assert "hunter2" not in masked
    assert "Tiger" not in masked
    assert MASK in masked
    assert mask(masked) == masked, "masking twice changes nothing"


@pytest.mark.parametrize(
    "text",
    [
        "token_count=7",
        "--max-tokens 100 --max_tokens=100",
        "secret_sauce=3",
        "--secret-sauce extra",
        "password_length=12",
        "pad_token=<pad> eos_token=</s> --mask-token [MASK]",
        "tokenizer=gpt2",
        "key=value public_key=abc monkey=7 --key-dim 64",
        "--password 12345 token=5 secret=1e-3 api_key=0x1f",
        "token=[1, 2, 3]",
        "password=true secret=None token=default",
        "--use-auth-token train.py",
        "--password --epochs 3",
        "scikit-learn sk-learn sk-learn-1.2 task-sk-learn disk-abcdef12345",
        "hf_hub_download hf_transformers hf_model_v2_large wk_steps=100 wk_1",
        "ValueError: invalid token: ')'",
        "git@github.com:x/y http://localhost:8080/x http://host:80/a@b mail a@b.c",
        "PWD=/home/x loss: 0.5 lr=1e-3 seed=3",
        "5f3a9c0e1b2d4f6a8c7e9d0b1a2c3d4e5f6a7b8c",
    ],
)
def test_a_harmless_text_stays(text: str) -> None:
    assert mask(text) == text


def test_masked_json_is_still_json() -> None:
    given = {"password": "a\"b'c", "secrets": ["a", "b"], "token": {"x": "y"}, "epochs": [1, 2]}
    masked = json.loads(mask(json.dumps(given)))
    assert masked == {
        "password": MASK,
        "secrets": [MASK, MASK],
        "token": {MASK: MASK},
        "epochs": [1, 2],
    }


def test_a_word_after_a_secret_option_is_masked_whole() -> None:
    words = ["t.py", "--password", "a b'c, d&e", "--password=a b'c, d&e", "PASSWORD=a b&c"]
    shown = ["t.py", "--password", MASK, f"--password={MASK}", f"PASSWORD={MASK}"]
    assert mask_template(words) == shown


def test_placeholders_stay_in_a_secret() -> None:
    words = ["--api-key", "{key}", "--password=pre{x}post", "TOKEN={token}"]
    assert mask_template(words) == ["--api-key", "{key}", f"--password={MASK}{{x}}{MASK}", words[3]]


def test_a_secret_word_is_masked_in_other_words_too() -> None:
    words = ["t.py", "--api-key", VALUE, "--out", f"runs/{VALUE}"]
    assert mask_template(words) == ["t.py", "--api-key", MASK, "--out", f"runs/{MASK}"]


def test_what_vary_compares_stays_on_the_command_line() -> None:
    compared = ["trainmark", "measure", "--vary", "token=a,b", "--vary-env=API_KEY=c,d"]
    line = mask_command_line([*compared, "--", "t.py", "--token", "{token}", "--vary", "token=x"])
    assert "--vary token=a,b --vary-env=API_KEY=c,d" in line
    assert line.endswith(f"'token={MASK}'"), "behind the dashes it is an option of the command"


def test_a_given_secret_is_masked_wherever_it_is_printed() -> None:
    given = Secrets.of(
        ["t.py", "--password", VALUE, "--db", "pg://user:s3cr3tpw@host"], {"HF_TOKEN": "abcdefgh"}
    )
    printed = f"login {VALUE}, s3cr3tpw, abcdefgh; not x{VALUE}x"
    assert given.mask(printed) == f"login {MASK}, {MASK}, {MASK}; not x{VALUE}x"


@pytest.mark.parametrize("value", ["a", "abc", "12345678", "true", "{placeholder}"])
def test_a_short_or_harmless_value_is_not_searched(value: str) -> None:
    assert Secrets.of(["t.py", "--password", value], {}).values == frozenset()


def test_secrets_are_not_in_their_own_representation() -> None:
    assert VALUE not in repr(Secrets.of(["--password", VALUE], {}))


def test_an_error_shows_no_secret() -> None:
    error = UsageError("can't fetch", found=f"https://user:{VALUE}@host", fix=f"API_KEY={VALUE}")
    assert str(error) == f"can't fetch: found https://{MASK}@host. API_KEY={MASK}"


@pytest.mark.parametrize(
    "name", ["--api-key", "OPENAI_API_KEY", "accessToken", "db.password", "client-secret", "secret"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_name_of_secret(name)


@pytest.mark.parametrize(
    "name", ["token_count", "tokens", "pad_token", "secret_sauce", "password_length", "key", "pwd"]
)
def test_names_that_are_harmless(name: str) -> None:
    assert not is_name_of_secret(name)


@pytest.mark.parametrize(
    "piece", ["a=", "password:", "--a ", "'", "://", "api_key='\\", "token=[", "Bearer ", "sk-"]
)
def test_hostile_text_takes_no_quadratic_work(piece: str) -> None:
    """In quadratic time, this many characters would take longer than a test may."""
    text = piece * (400_000 // len(piece))
    assert len(mask(text)) <= 2 * len(text)
