"""The addresses of the ingest service: its own certificate, or one of a proxy in front of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.engine.channels.landing import Landing
from tests.engine.channels.served import grant
from tests.until import wait_until
from tidemark.channels.driver.service.job_serve_ingest import serve_ingest
from tidemark.channels.model.jobs import ServeIngest
from tidemark.client.ingest_service import ServiceClient
from tidemark.errors import IngestUnavailable, InvalidArgument, JobCancelled
from tidemark.jobs.context import JobContext
from tidemark.jobs.progress import Progress

pytestmark = pytest.mark.spark

HERE = ip_address("127.0.0.1")


def certificate(directory: Path) -> tuple[str, str]:
    """The files of a certificate of this host, which it has signed itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tidemark")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(HERE)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    texts = {
        "cert.pem": signed.public_bytes(pem),
        "key.pem": key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
    }
    for file, text in texts.items():
        (directory / file).write_bytes(text)
    return str(directory / "cert.pem"), str(directory / "key.pem")


@contextmanager
def service(landing: Landing, tokens: Path, **how: Any) -> Iterator[str]:
    """The address that the log of a service's job shows. At the end the job is cancelled, and must commit all rows."""
    said: list[str] = []
    is_over = threading.Event()

    def stop_if_due() -> None:
        if is_over.is_set():
            raise JobCancelled(key="serve")

    job = JobContext(landing.spark, None, {}, Progress(list, said.append), datetime.now(UTC), stop_if_due)  # type: ignore[arg-type]
    request = ServeIngest(lake_root=str(landing.root), tokens_file=str(tokens), port=0, **how)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(serve_ingest, job, request)
        try:
            wait_until(lambda: bool(said) or running.done())
            assert said, running.result()
            yield said[0].removeprefix("ingest service at ")
        finally:
            is_over.set()
        assert running.result().committed


@pytest.fixture
def tokens(landing: Landing, tmp_path: Path) -> Path:
    landing.create("db/orders")
    grant(tmp_path / "tokens.json", app="secret: db.*")
    return tmp_path / "tokens.json"


def test_rows_are_appended_over_tls_with_the_certificate_of_the_service(
    landing: Landing, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    with service(landing, tokens, certificate=cert, key=key) as address:
        assert address.startswith("https://127.0.0.1:")
        with ServiceClient(address, "secret") as stranger, pytest.raises(IngestUnavailable, match=r"(?i)certificate"):
            stranger.open_channel("c", "db.orders")
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        with ServiceClient(address, "secret") as client:
            client.open_channel("c", "db.orders").insert_rows([{"id": 1}], "1")
    assert (landing.rows("db/orders", "id"), landing.token("C", "db/orders")) == ([(1,)], "1")


def test_behind_a_proxy_the_service_listens_for_others_without_a_certificate(landing: Landing, tokens: Path) -> None:
    with pytest.raises(InvalidArgument, match="behind_proxy"), service(landing, tokens, host="0.0.0.0"):
        pass
    with service(landing, tokens, host="0.0.0.0", behind_proxy=True) as address:
        assert address.startswith("http://0.0.0.0:")
        assert httpx.get(f"http://127.0.0.1:{address.rpartition(':')[2]}/health", timeout=60).status_code == 200
