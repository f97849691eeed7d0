"""Where a key may go: to its own provider and to the address beside it, nowhere else."""

import pickle

import pytest
from chat_cases import KEY

from unswayed.backends import open_backend
from unswayed.backends.addresses import Address, Secret, Service, is_loopback, resolve
from unswayed.base.errors import MissingKeyError, UnknownNameError, UsageError

OPENAI = Service("OPENAI", "https://api.openai.com/v1")
LOCAL = Service("LOCAL")


def at(service: Service, base_url: str | None = None, **environ: str) -> Address:
    return resolve(service, base_url=base_url, environ=environ, model="openai/m")


def test_the_key_goes_to_its_own_address_and_the_one_beside_it() -> None:
    address = at(OPENAI, OPENAI_API_KEY=f" {KEY}\n")
    assert (address.url, address.is_own) == ("https://api.openai.com/v1", True)
    assert address.key.reveal() == KEY
    address = at(OPENAI, OPENAI_API_KEY=KEY, OPENAI_BASE_URL="https://gate.example/openai/v1/")
    assert (address.url, address.is_own) == ("https://gate.example/openai/v1", False)
    assert address.key.reveal() == KEY


@pytest.mark.parametrize(
    "base_url",
    [
        "https://evil.example/v1",
        "http://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com:8443/v1",
        "http://api.openai.com/v1",
        "http://localhost:8000/v1",
        "http://127.0.0.1:8000/v1",
    ],
)
def test_a_configured_address_gets_no_foreign_key(base_url: str) -> None:
    address = at(OPENAI, base_url, OPENAI_API_KEY=KEY)
    assert not address.key
    assert not address.is_own
    assert "OPENAI_BASE_URL" in address.no_key_reason
    assert KEY not in address.no_key_reason


@pytest.mark.parametrize(
    "base_url",
    ["https://api.openai.com/v1", "https://API.openai.com:443/v1/", "https://gate.example/x"],
)
def test_a_configured_address_gets_its_own_key(base_url: str) -> None:
    address = at(OPENAI, base_url, OPENAI_API_KEY=KEY, OPENAI_BASE_URL="https://gate.example/v1")
    assert address.key.reveal() == KEY


def test_a_key_does_not_travel_unencrypted() -> None:
    with pytest.raises(UsageError, match="unencrypted"):
        at(OPENAI, OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://gate.example/v1")
    with pytest.raises(UsageError, match="unencrypted"):
        at(LOCAL, LOCAL_API_KEY=KEY, LOCAL_BASE_URL="http://10.0.0.8:8000/v1")
    assert at(LOCAL, LOCAL_API_KEY=KEY, LOCAL_BASE_URL="http://localhost:8000/v1").key


def test_local_and_private_servers_need_no_key() -> None:
    assert at(OPENAI, "http://localhost:8000/v1").is_loopback
    assert not at(LOCAL, LOCAL_BASE_URL="http://gpu-box:8000/v1").key
    assert not at(LOCAL, LOCAL_BASE_URL="https://gate.example", LOCAL_API_KEY="").key


def test_a_missing_key_says_which() -> None:
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        at(OPENAI)
    with pytest.raises(MissingKeyError, match="LOCAL_API_KEY"):
        at(LOCAL, LOCAL_BASE_URL="https://gate.example/v1")
    with pytest.raises(MissingKeyError, match="LOCAL_BASE_URL"):
        at(LOCAL, LOCAL_API_KEY=KEY)


@pytest.mark.parametrize(
    "base_url",
    ["localhost:8000", "ftp://host/v1", "http://", "http://host:99999/v1", "http://[::1/v1", "x"],
)
def test_invalid_address_is_rejected(base_url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        at(OPENAI, base_url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="user name or password") as caught:
        at(OPENAI, f"https://me:{KEY}@host/v1")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\nX: y", "two words", "schlüssel"])
def test_a_key_that_cannot_be_a_header_is_refused_unrepeated(key: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        at(OPENAI, OPENAI_API_KEY=key)
    assert key not in str(caught.value)


def test_a_query_is_kept_for_the_call_and_not_shown() -> None:
    address = at(LOCAL, f"http://localhost:1/v1?token={KEY}#part")
    assert address.join("chat/completions") == (
        f"http://localhost:1/v1/chat/completions?token={KEY}"
    )
    assert address.shown == "http://localhost:1/v1"
    assert KEY not in repr(address)


def test_service_names_become_variable_names() -> None:
    service = Service.named("together-ai")
    assert service.key_variable == "TOGETHER_AI_API_KEY"
    assert service.url_variable == "TOGETHER_AI_BASE_URL"


def test_loopback_is_told_by_the_name_alone() -> None:
    here = ("localhost", "a.localhost", "127.0.0.1", "127.8.9.1", "::1")
    other = ("localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0")
    assert {host: is_loopback(host) for host in here + other} == dict.fromkeys(
        here, True
    ) | dict.fromkeys(other, False)


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r}"
    assert secret.scrub(f"a {KEY} b") == "a [key hidden] b"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_a_placeholder_key_does_not_garble_messages() -> None:
    assert Secret("x").scrub("an extra box") == "an extra box"
    assert Secret("").scrub("text") == "text"


def test_known_services_need_no_address_and_ollama_no_key() -> None:
    local = at(Service.named("ollama"))
    assert local.url == "http://localhost:11434/v1"
    assert local.is_loopback
    assert not local.key
    routed = at(Service.named("openrouter"), OPENROUTER_API_KEY=KEY)
    assert (routed.url, routed.key.reveal()) == ("https://openrouter.ai/api/v1", KEY)
    own = "http://127.0.0.1:1/v1"
    assert at(Service.named("groq"), GROQ_BASE_URL=own).url == own
    with pytest.raises(MissingKeyError, match="TOGETHER_API_KEY"):
        at(Service.named("together"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ollama/llama3", r"write openai-api/ollama/llama3\."),
        ("azure/gpt-4.1", "write openai-api/azure/gpt-4.1, with its address in AZURE_BASE_URL"),
        ("litellm/x/y", "write openai-api/litellm/x/y, with its address in LITELLM_BASE_URL"),
        ("vlm/x", "unknown provider 'vlm'. Did you mean 'vllm'"),
        (
            "mistral/x",
            "unknown provider 'mistral'. Known: anthropic, decisions, hf, .*openai-api/<service>/<model>",
        ),
    ],
)
def test_names_that_people_type_say_what_to_write(name: str, told: str) -> None:
    with pytest.raises(UnknownNameError, match=told):
        open_backend(name)
