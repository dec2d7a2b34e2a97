"""nginx and Caddy in processes of their own, with the blocks of docs/serve.md."""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

from tests.serving.server.cases import Client, wait_for

TEXT = (Path(__file__).parent.parent.parent.parent / "docs/serve.md").read_text(encoding="utf-8")
NAME = "translate.example.org"
# what stands around the page's blocks: only files of a folder of our own, only our own ports
NGINX = """
pid nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxied;
    fastcgi_temp_path unused_1;
    uwsgi_temp_path unused_2;
    scgi_temp_path unused_3;
    include page.conf;
}
"""
CADDY = """
{
    admin off
    local_certs
    skip_install_trust
    auto_https disable_redirects
    https_port %d
}
"""


def blocks(language):
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


def replaced(text, *changes):
    """Replace parts of a configuration, each of which must be there."""
    for old, new in changes:
        assert old in text, f"docs/serve.md no longer has {old!r}"
        text = text.replace(old, new)
    return text


class ProxyClient(Client):
    """Asks a proxy over TLS, by the name of its site."""

    def __init__(self, port):
        super().__init__(port)
        # the certificates are made for the test
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def connection(self, timeout=30):
        """Return a connection whose TLS names the site."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout)
        made = http.client.HTTPConnection(NAME, self.port, timeout=timeout)
        made.sock = self.context.wrap_socket(plain, server_hostname=NAME)
        return made

    def ask(self, method, path, body=None, kind="application/json", timeout=30, headers=None):
        connection = self.connection(timeout)
        try:
            given = {"Host": NAME} | ({} if body is None else {"Content-Type": kind})
            connection.request(method, path, body, {**given, **(headers or {})})
            answer = connection.getresponse()
            # proxies write the names of headers as they like
            given = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, given, answer.read()
        finally:
            connection.close()

    @contextlib.contextmanager
    def sent(self, path, **fields):
        """Send a request; yield a function that reads the beginning of its answer."""
        connection = self.connection()
        head = {"Host": NAME, "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(fields), head)
        with contextlib.closing(connection), contextlib.ExitStack() as opened:
            yield lambda: opened.enter_context(connection.getresponse())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def nginx_files(folder, config, port):
    """Write the files of nginx and return its command; `config` has the ports of the servers."""
    page = replaced(
        config,
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/translate.pem", "site.pem"),
        ("/etc/ssl/translate.key", "site.key"),
    )
    (folder / "page.conf").write_text(page, encoding="utf-8")
    # the workers of root are another user, who cannot read the folders of a test
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + NGINX, encoding="utf-8")
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout site.key -out site.pem"
    command = ["openssl", *options.split(), "-subj", f"/CN={NAME}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return ["nginx", "-p", f"{folder}/", "-c", "nginx.conf", "-g", "daemon off;"]


def caddy_files(folder, config, port):
    """Write the file of Caddy and return its command."""
    (folder / "Caddyfile").write_text(CADDY % port + config, encoding="utf-8")
    return ["caddy", "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


PROXIES = {"nginx": nginx_files, "caddy": caddy_files}


def is_missing(name):
    """Return whether a proxy cannot run here."""
    needed = (name, "openssl") if name == "nginx" else (name,)
    return any(shutil.which(each) is None for each in needed)


@contextlib.contextmanager
def proxy(name, folder, config):
    """Run a proxy with a configuration; yield its client."""
    port = free_port()
    command = PROXIES[name](folder, config, port)
    client = ProxyClient(port)
    log = folder / "log"
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)

    def is_ready():
        assert process.poll() is None, log.read_text(encoding="utf-8")
        if not client.is_listening():
            return False
        try:
            client.connection().close()
        except ssl.SSLError:
            # Caddy listens before it has made its certificate
            return False
        return True

    try:
        wait_for(is_ready, 60)
        yield client
    finally:
        process.terminate()
        process.wait(20)
