"""Keys: where they come from, and that they are seen nowhere, in whatever form they come back."""

from __future__ import annotations

import base64
import html
import json
import os
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.config import variables_of
from fairtrial.config.keys import env_files
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.secrets import Hider, ambient_secrets, is_credential, looks_random, looks_secret
from fairtrial.core.variables import Variables, display
from fairtrial.providers.errors import error_of_status

KEY = "sk-Ab/12+cd&\"e'f\\gh-9876543210"
FORMS = {
    "plain": str,
    "upper": str.upper,
    "lower": str.lower,
    "url": lambda text: quote(text, safe=""),
    "url, lower hex": lambda text: quote(text, safe="").lower(),
    "url, slashes": quote,
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in json": lambda text: json.dumps({"x": text}),
    "php json": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "html": html.escape,
    "python": lambda text: repr(text)[1:-1],
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "basic": lambda text: "Basic " + base64.b64encode(f"user:{text}".encode()).decode(),
    "basic, other user": lambda text: "Basic " + base64.b64encode(f"me:{text}".encode()).decode(),
    "base64, url": lambda text: base64.urlsafe_b64encode(f"a:{text}?".encode()).decode(),
}


def pieces(text: str, length: int = 12) -> list[str]:
    """Every part of a text that is long enough to be of use to somebody."""
    return [text[n : n + length] for n in range(len(text) - length + 1)]


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_a_key_that_no_suite_names_is_hidden_in_every_form(self, form: str) -> None:
        variables = Variables({"SOME_API_KEY": KEY, "HOME": "/home/me"})
        encoded = FORMS[form](KEY)
        for text in (encoded, f"it is {encoded}, in /home/me", f"x{encoded}"):
            assert "SOME_API_KEY" in variables.hide(text)
            for shown in (
                variables.hide(text),
                display(variables.conceal(text)),
                str(variables.hide_all([{"a": text}])),
            ):
                left = [piece for piece in pieces(encoded[-len(KEY) :]) if piece.lower() in shown.lower()]
                assert not left, (form, shown)
        assert "/home/me" in variables.hide("in /home/me")

    @settings(max_examples=50, deadline=None)
    @example("00000000000ß", "upper", "")
    @given(st.text(min_size=12, alphabet=st.characters(codec="utf-8")), st.sampled_from(sorted(FORMS)), st.text())
    def test_whatever_the_key_and_the_text_around_it(self, key: str, form: str, around: str) -> None:
        variables = Variables({}, {"K": key})
        if looks_secret(key):
            encoded = FORMS[form](key)
            shown = variables.hide(f"{around}{encoded}{around}")
            assert encoded.lower() not in shown.lower() or encoded.lower() in around.lower() * 2

    @pytest.mark.slow
    @settings(deadline=None)
    @given(st.text(), st.text(min_size=8))
    def test_an_exact_value_comes_back_when_it_is_needed(self, text: str, value: str) -> None:
        variables = Variables({}, {"NAME": value})
        template = variables.conceal(f"{text}{value}")
        if "hidden]" not in template:
            assert variables.reveal(template) == f"{text}{value}"

    def test_half_a_key_is_hidden_too(self) -> None:
        key = "sk-proj-" + "Ab1Cd2Ef3G" * 10
        variables = Variables({"OPENAI_API_KEY": key})
        for length in range(len(key) // 2, len(key)):
            for text in (key[:length], f"{key[:length]}…", f"got {key[:length]} … and more"):
                assert key[8:20] not in variables.hide(text)
        assert variables.hide("a key begins with sk-proj-") == "a key begins with sk-proj-"

    def test_a_long_error_is_not_cut_inside_a_key(self) -> None:
        key = "sk-0123456789abcdefghij0123456789"
        variables = Variables({"OPENAI_API_KEY": key})
        for place in (19_960, 19_975, 19_985, 20_000):
            failure = error_of_status(400, json.dumps({"error": {"message": "x" * place + key + " y" * 99}}).encode())
            shown = variables.hide(failure.message)
            assert not [piece for piece in pieces(key, 8) if piece in shown]

    def test_letters_that_grow_in_lower_case_move_nothing(self) -> None:
        variables = Variables({"MY_TOKEN": "Abcdefgh-12345"})
        assert variables.hide("İİİ aBCDEFGH-12345 İ") == "İİİ [MY_TOKEN hidden] İ"

    def test_ordinary_texts_stay_whole(self) -> None:
        environment = {
            "API_TOKEN": "test", "DEBUG_KEY": "1", "AUTH": "true", "DB_PASS": "localhost", "SECRET_HOST": "localhost",
            "SSH_AUTH_SOCK": "/tmp/ssh-abc/agent.12", "TOKENIZERS_PARALLELISM": "warn-always", "AUTHOR": "Jane Smith",
            "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json", "HOME": "/home/someone", "MAX_TOKENS": "1000000000",
            "KEYBOARD_LAYOUT": "german-nodeadkeys", "AUTH_URL": "https://login.example.org/oauth", "CITY": "Copenhagen",
        }  # fmt: skip
        variables = Variables(environment)
        for text in environment.values():
            assert variables.hide(f"so {text}.") == f"so {text}."
        variables.fill("${CITY}")  # named by the suite, but an answer in other letters is still that answer
        assert variables.hide("Copenhagen, COPENHAGEN") == "${CITY}, COPENHAGEN"

    def test_what_a_credential_is_called(self) -> None:
        for name in ("OPENAI_API_KEY", "apiKey", "X-Api-Key", "Authorization", "PGPASSWORD", "MYSQL_PWD", "HF_TOKEN",
                     "AWS_SECRET_ACCESS_KEY", "GITHUB_PAT", "password", "client_secret", "Cookie", "API_KEY2"):  # fmt: skip
            assert is_credential(name), name
        for name in ("PATH", "AUTHOR", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MODEL", "XAUTHORITY", "COMPAT_MODE"):
            assert not is_credential(name), name

    def test_a_password_inside_an_address_is_hidden(self) -> None:
        variables = Variables({"HTTPS_PROXY": "http://me:pa55-w0rd-of-mine@proxy.test:3128"})
        assert variables.hide("cannot reach me:pa55-w0rd-of-mine@proxy.test") == (
            "cannot reach me:[HTTPS_PROXY hidden]@proxy.test"
        )


class TestRuns:
    @pytest.fixture
    async def leaking(self, run_suite, tmp_path, monkeypatch):
        """A program that prints all of its environment, and its keys in other clothes."""
        monkeypatch.setenv("SOME_SERVICE_TOKEN", KEY)
        (tmp_path / ".env").write_text("OTHER_KEY=other-0123456789abcdef\nUNNAMED=unnamed-0123456789abcdef\n")
        (tmp_path / ".env").chmod(0o600)
        code = (
            "import os,sys,base64,urllib.parse as u\n"
            "for k,v in sorted(os.environ.items()): print(k,v)\n"
            "t=os.environ['SOME_SERVICE_TOKEN']\n"
            "print(u.quote(t,safe=''), base64.b64encode(('user:'+t).encode()).decode(), t.upper())\n"
            "print(open('.env').read())\n"
        )
        fails = code + "sys.stderr.write(t+'\\n::error::'+u.quote(t,safe='')); sys.exit(3)"
        command = [{"id": name, "target": "command:x", "options": {"command": [sys.executable, "-c", text], "cwd": "."}}
                   for name, text in (("says", code), ("fails", fails))]  # fmt: skip
        return await run_suite(targets=command, retry={"attempts": 1})

    @pytest.mark.slow
    async def test_what_a_program_prints_of_its_environment_is_not_kept(self, leaking, tmp_path):
        store = Path(leaking.store.address)
        files = [store, *store.parent.glob(f"{store.name}-*")]
        for ending in ("json", "jsonl", "csv", "md", "junit.xml", "html"):
            from fairtrial.reports.export import export

            export(leaking, f"out.{ending}")
            files.append(tmp_path / f"out.{ending}")
        values = [KEY, "other-0123456789abcdef", "unnamed-0123456789abcdef"]
        kept = [form(value) for value in values for form in FORMS.values()]
        for file in files:
            body = file.read_bytes().lower()
            assert not [text for text in kept if text.lower().encode() in body], file
        assert leaking.store.address and "${SOME_SERVICE_TOKEN}" in next(iter(leaking.trials())).answer

    async def test_it_is_scored_as_it_was(self, run_suite, monkeypatch):
        monkeypatch.setenv("SOME_SERVICE_TOKEN", KEY)
        target = {"target": "command:x", "options": {"command": ["printenv", "SOME_SERVICE_TOKEN"]}}
        (tmp,) = (await run_suite(targets=[target], cases=[{"input": "?", "expected": "${SOME_SERVICE_TOKEN}"}])).arms
        assert tmp.aggregate.mean == 1.0


class TestLiterals:
    @pytest.mark.parametrize(
        "keys",
        [
            {"providers": {"lab": {"base_url": "http://lab.test/v1", "api_key": "sk-literal-0123456789"}}},
            {"providers": {"lab": {"base_url": "http://x", "headers": {"Authorization": "Bearer sk-literal-0123456789"}}}},
            {"providers": {"lab": {"base_url": "http://x/v1?api_key=sk-literal-0123456789"}}},
            {"providers": {"lab": {"base_url": "http://me:sk-literal-0123456789@x/v1"}}},
            {"mcp_servers": {"s": {"command": "x", "env": {"S_TOKEN": "sk-literal-0123456789"}}}},
            {"mcpServers": {"s": {"command": "x", "args": ["--api-key", "sk-literal-0123456789"]}}},
            {"mcpServers": {"s": {"command": "x", "args": ["--api-key=sk-literal-0123456789"]}}},
            {"mcpServers": {"s": {"url": "http://x?token=sk-literal-0123456789"}}},
            {"targets": [{"target": "command:x", "options": {"command": ["cat"], "env": {"A_KEY": "sk-literal-0123456789"}}}]},
            {"targets": [{"target": "command:x", "options": {"command": ["curl", "-H", "X-Api-Key: sk-literal-0123456789"]}}]},
        ],
    )  # fmt: skip
    def test_a_key_in_a_suite_is_a_problem_and_hidden(self, write_suite, keys):
        with pytest.raises(ProblemsError, match=r"secret key in the suite: write \$\{VAR\}") as raised:
            ft.load_suite(write_suite(**keys))
        assert "sk-literal" not in str(raised.value)

    def test_what_only_looks_like_one_is_none(self, write_suite, monkeypatch):
        monkeypatch.setenv("LAB", "sk-0123456789abcdef")
        providers = {
            "lab": {
                "base_url": "http://lab.test/v1",
                "api_key": "${LAB}",
                "headers": {"Authorization": "Bearer ${LAB}"},
            },
            "own": {"base_url": "http://own.test/v1", "api_key": "not-needed"},
            "none": {"base_url": "http://own.test/v1", "api_key": "EMPTY"},
        }
        answers = {"token": "A Token is 1 Word of the Text, or a part of 1."}
        mock = {"id": "m", "target": "mock:x", "options": {"answers": answers}}
        ft.load_suite(write_suite(providers=providers, targets=["lab:m", mock], params={"max_tokens": 4096}))


class TestFiles:
    """`.env`: of the suite's folder or the working folder, one's own, and for keys."""

    def write(self, path: Path, text: str = "LAB_KEY=lab-0123456789\n", mode: int = 0o600) -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def test_beside_the_suite_and_in_the_working_folder(self, tmp_path):
        self.write(tmp_path / ".env", "LAB_KEY=here-0123456789\nOTHER_KEY=other-0123456789\n")
        self.write(tmp_path / "suites/.env", "LAB_KEY=near-0123456789\n")
        found = variables_of(tmp_path / "suites").environment
        assert (found["LAB_KEY"], found["OTHER_KEY"]) == ("near-0123456789", "other-0123456789")

    def test_never_from_a_folder_above(self, tmp_path, monkeypatch):
        self.write(tmp_path / ".env")
        (tmp_path / "below/suites").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "below")
        assert "LAB_KEY" not in variables_of(tmp_path / "below/suites").environment

    def test_python_reads_it_and_leaves_the_process_alone(self, write_suite, tmp_path):
        self.write(tmp_path / ".env")
        suite = ft.load_suite(write_suite(system="Use ${LAB_KEY}"))
        assert suite.arms[0].condition.system == "Use lab-0123456789" and "LAB_KEY" not in os.environ

    @pytest.mark.parametrize("mode", [0o602, 0o666])
    def test_a_file_that_others_can_write_is_refused(self, tmp_path, mode):
        self.write(tmp_path / ".env", mode=mode)
        with pytest.raises(FairtrialError, match=r"\.env is writable by other users.*chmod 600"):
            env_files()

    def test_a_file_of_a_group_is_refused_unless_it_is_a_group_of_one(self, tmp_path, monkeypatch):
        self.write(tmp_path / ".env", mode=0o660)
        import grp
        import pwd

        me = pwd.getpwuid(os.geteuid()).pw_name
        monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group((me, "x", 1, ["eve"])))
        with pytest.raises(FairtrialError, match="is writable by other users"):
            env_files()
        monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group((me, "x", 1, [])))
        assert env_files()[0].values == {"LAB_KEY": "lab-0123456789"}

    def test_a_file_of_somebody_else_is_refused(self, tmp_path, monkeypatch):
        self.write(tmp_path / ".env")
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
        with pytest.raises(FairtrialError, match=r"\.env belongs to another user"):
            env_files()

    def test_a_folder_of_that_name_is_none(self, tmp_path):
        (tmp_path / ".env").mkdir()
        assert env_files() == []

    def test_a_base_url_is_named_and_a_program_not_taken(self, tmp_path, monkeypatch, capsys):
        from fairtrial.cli.asking import load_dotenv

        names = ("FAIRTRIAL_BROWSER", "PATH", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "HTTPS_PROXY", "BASH_ENV",
                 "GIT_ASKPASS", "SSL_CERT_FILE", "FAIRTRIAL_STORE")  # fmt: skip
        text = "".join(f"{name}=/tmp/evil-program\n" for name in names)
        text += "OPENAI_BASE_URL=http://evil.test\nGITHUB_TOKEN=ghp_0123456789\nMODEL=gpt-x\n"
        self.write(tmp_path / ".env", text)
        for name in ("GITHUB_TOKEN", "OPENAI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
        before = dict(os.environ)
        with pytest.raises(FairtrialError, match="your keys would be sent there"):
            load_dotenv()
        env_files(confirm=True)
        load_dotenv()
        try:
            changed = {name for name in os.environ if os.environ[name] != before.get(name)}
            assert changed - {"GITHUB_TOKEN", "OPENAI_BASE_URL"} == set()
            said = capsys.readouterr().err
            assert f"OPENAI_BASE_URL is taken from {tmp_path / '.env'}" in said
            assert all(name in said for name in names) and "GITHUB_TOKEN" not in said and "evil" not in said
            found = variables_of().environment
            assert found["MODEL"] == "gpt-x" and "/tmp/evil-program" not in found.values()
        finally:
            os.environ.pop("OPENAI_BASE_URL", None)
            os.environ.pop("GITHUB_TOKEN", None)

    def test_python_warns_of_a_base_url(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
        self.write(tmp_path / ".env", "OPENAI_BASE_URL=http://evil.test\n")
        env_files(confirm=True)
        with pytest.warns(UserWarning, match="OPENAI_BASE_URL is taken from"):
            variables_of()


@pytest.mark.parametrize(
    ("value", "random"),
    [
        ("9f8Kq2LmZx7Wv4Tb1Nc6Rd3Hs5Jg0Pq8", True),
        ("correct horse battery staple 12", False),  # words
        ("12345678901234567890123456789012", False),  # figures
        ("abcdefghijklmnopqrstuvwxyzabcdef", False),  # letters
        ("9f8K", False),
        ("https://example.com/a-long-path/with-123-in-it", False),
    ],
)
def test_what_looks_like_a_key(value: str, random: bool) -> None:
    assert looks_random(value) is random


def test_a_part_of_a_variable_is_hidden_without_claiming_to_be_the_variable():
    hider = Hider(ambient_secrets({"DATABASE_URL": "postgres://me:9f8Kq2LmZx7Wv4Tb@db.test/x"}, {}))
    assert hider.hide("9f8Kq2LmZx7Wv4Tb is wrong") == "[DATABASE_URL hidden] is wrong"
