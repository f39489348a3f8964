"""Where files are looked for, and the download: against a server on this machine, which each test starts and stops."""

import hashlib
import http.server
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.data import download, places, uci
from bayesdp.data.download import Original
from bayesdp.errors import InputError

ABALONE = b"M,1,1,1,1,1,1,1,9\nF,2,1,1,1,1,1,1,12\nI,3,2,1,1,1,1,1,12\nI,3,1,2,1,1,1,1,3\nM,4,1,2,1,1,1,1,13\n"


class Server:
    """Serves `files` by path; a value may also be a function that handles the request."""

    def __init__(self):
        self.files, self.asked = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                if callable(content):
                    content(self)
                elif content is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(5)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "_SILENCE", 1.0)
    running = Server()
    yield running
    running.stop()


def serve_abalone(server, monkeypatch, content=ABALONE, urls=("/abalone.data",)):
    original = Original(
        ("abalone",),
        "abalone.data",
        len(ABALONE),
        hashlib.sha256(ABALONE).hexdigest(),
        tuple(url if url.startswith("http") else server.url + url for url in urls),
    )
    server.files["/abalone.data"] = content
    monkeypatch.setattr(uci, "ABALONE", (original,))
    return original


def everything(folder):
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


def test_a_download_goes_to_the_cache_and_is_found_there(server, monkeypatch, cache, capfd):
    serve_abalone(server, monkeypatch)
    first = data.load("abalone")
    assert first.x.shape == (4, 8)
    assert first.source == "abalone.data (the original, by sha256)"
    assert (cache / "abalone" / "abalone.data").read_bytes() == ABALONE
    assert everything(cache) == ["abalone.data"]
    output = capfd.readouterr()
    assert output.out == ""
    assert "Downloading abalone.data" in output.err
    assert np.array_equal(data.load("abalone", download=False).x, first.x)
    assert server.asked == ["/abalone.data"]


def test_a_wrong_checksum_leaves_nothing_behind(server, monkeypatch, cache):
    original = serve_abalone(server, monkeypatch, content=ABALONE.replace(b"12", b"13"))
    with pytest.raises(
        InputError, match=f"another file: its sha256 is [0-9a-f]{{64}}, .* {original.sha256}"
    ) as refused:
        data.load("abalone")
    assert "abalone/abalone.data" in str(refused.value)
    assert "save as" in str(refused.value)
    assert everything(cache) == []


def too_long(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(bytes(10_000))


def breaks_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(ABALONE)))
    handler.end_headers()
    handler.wfile.write(ABALONE[:20])


def stalls(handler):
    breaks_off(handler)
    handler.wfile.flush()
    threading.Event().wait(3)


def garbage(handler):
    handler.wfile.write(b"no http\r\n\r\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ABALONE[:-1], "bytes instead of"),
        (ABALONE + b"x", "more than"),
        (too_long, "more than"),
        (breaks_off, "(20 bytes instead of|broke off after 20 bytes)"),
        (stalls, "broke off after .* bytes"),
        (garbage, "broke off|not reached"),
        (None, "answered 404"),
    ],
)
def test_a_download_that_goes_wrong(server, monkeypatch, cache, content, message):
    serve_abalone(server, monkeypatch, content=content)
    with pytest.raises(InputError, match=f"The download failed: .*{message}"):
        data.load("abalone")
    assert everything(cache) == []


def test_the_next_source_is_tried(server, monkeypatch, cache):
    server.files["/wrong"] = ABALONE + ABALONE
    serve_abalone(server, monkeypatch, urls=("http://127.0.0.1:9/nobody", "/missing", "/wrong", "/abalone.data"))
    assert len(data.load("abalone").x) == 4
    assert server.asked == ["/missing", "/wrong", "/abalone.data"]
    assert everything(cache) == ["abalone.data"]


def test_an_interrupted_download_leaves_nothing_behind(server, monkeypatch, cache):
    serve_abalone(server, monkeypatch)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.load("abalone")
    assert everything(cache) == []


def test_a_cache_that_cannot_be_written(server, monkeypatch, tmp_path):
    serve_abalone(server, monkeypatch)
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(InputError, match="to be a folder that can be written to, got: Not a directory"):
        data.load("abalone")
    assert server.asked == []


def test_without_download_the_message_says_what_to_put_where(tmp_path, cache):
    with pytest.raises(InputError) as refused:
        data.load("mnist", data_dir=tmp_path, download=False)
    message = str(refused.value)
    assert f"in '{tmp_path}' or '{cache}' (BAYESDP_DATA is not set)" in message
    assert "MNIST/raw/train-images-idx3-ubyte.gz, MNIST/raw/train-labels-idx1-ubyte.gz" in message
    assert "The download is switched off. Get http://yann.lecun.com/exdb/mnist/train-images-idx3-ubyte.gz" in message
    assert f"in '{tmp_path}', or in another folder and give data_dir" in message


def test_only_missing_files_are_named(tmp_path):
    (tmp_path / "adult.data").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"got no adult/adult.test\. The download"):
        data.load("adult", data_dir=tmp_path, download=False)


def test_the_folder_given_comes_before_the_environment_and_the_cache(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("BAYESDP_DATA", str(tmp_path / "variable"))
    for number, folder in enumerate((tmp_path / "given", tmp_path / "variable", cache)):
        folder.mkdir(parents=True)
        (folder / "abalone.data").write_bytes(ABALONE * (number + 2))
    sizes = [
        len(data.load("abalone", data_dir=folder).x) + len(data.load("abalone", data_dir=folder).x_test)
        for folder in (tmp_path / "given", None)
    ]
    assert sizes == [10, 15]
    monkeypatch.delenv("BAYESDP_DATA")
    assert len(data.load("abalone").x) == 16


def test_folders_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"data_dir to be a folder with data sets, got data_dir='.*nowhere'"):
        data.load("abalone", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("BAYESDP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="BAYESDP_DATA to be a folder"):
        data.load("abalone")


def test_the_cache_is_where_the_platform_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_folder() == tmp_path / "xdg" / "bayesdp"
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert places.cache_folder() == tmp_path / ".cache" / "bayesdp"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert places.cache_folder() == tmp_path / "Library" / "Caches" / "bayesdp"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert places.cache_folder() == tmp_path / "local" / "bayesdp" / "Cache"
    monkeypatch.delenv("LOCALAPPDATA")
    assert places.cache_folder() == tmp_path / "AppData" / "Local" / "bayesdp" / "Cache"


def test_without_a_home_folder(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match=r"Expected a home folder for the cache, got none. Set BAYESDP_DATA"):
        places.cache_folder()


def test_published_files_are_well_described():
    from bayesdp.data import images

    originals = [*uci.ADULT, *uci.ABALONE, *images.MNIST, images.CIFAR10, *images.SVHN]
    assert len({original.sha256 for original in originals}) == len(originals) == 10
    for original in originals:
        assert len(original.sha256) == 64
        assert int(original.sha256, 16)
        assert all(url.endswith("/" + original.file) for url in original.urls)
        assert not os.path.isabs(original.path)
